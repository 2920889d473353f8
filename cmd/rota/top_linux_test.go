package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"
	"golang.org/x/term"

	"github.com/dutyrota/rota/internal/testdb"
)

// liveScreen is a program on a pseudo terminal, and what the terminal shows.
type liveScreen struct {
	*testing.T
	terminal
	cmd  *exec.Cmd
	tty  *term.State // before the program
	done chan error

	mu  sync.Mutex
	vt  *vt.Emulator
	raw bytes.Buffer
	alt bool // the alternate screen is shown
	bad []string
}

// startTop starts rota top on a terminal of 100 columns and 30 rows.
func startTop(t *testing.T, dir string, args ...string) *liveScreen {
	t.Helper()
	s := &liveScreen{T: t, terminal: newTerminal(t), done: make(chan error, 1), vt: vt.NewEmulator(100, 30)}
	s.vt.SetCallbacks(vt.Callbacks{
		AltScreen: func(on bool) { s.alt = on },
		Title:     func(title string) { s.bad = append(s.bad, "sets the title "+title) },
		Bell:      func() { s.bad = append(s.bad, "rings the bell") },
	})
	s.resize(t, 30, 100)
	var err error
	if s.tty, err = term.GetState(int(s.screen.Fd())); err != nil {
		t.Fatal(err)
	}
	s.cmd = rota(t.Context(), dir, append([]string{"top"}, args...)...)
	s.cmd.Env = append(s.cmd.Env, "TERM=xterm-256color", "NO_COLOR=")
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = s.screen, s.screen, s.screen
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { s.done <- s.cmd.Wait() }()
	go s.show()
	go func() { _, _ = io.Copy(s.keyboard, s.vt) }() // the terminal's answers to the program; until the pipe is closed
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()                 // it has ended, unless the test failed
		_ = s.vt.InputPipe().(io.Closer).Close() // Close of the emulator must not be called beside its Read
	})
	return s
}

// show lets the emulator show what the program writes.
func (s *liveScreen) show() {
	buffer := make([]byte, 64<<10)
	for {
		n, err := s.keyboard.Read(buffer)
		if err != nil {
			return
		}
		s.mu.Lock()
		s.raw.Write(buffer[:n])
		_, _ = s.vt.Write(buffer[:n]) // it never fails
		s.mu.Unlock()
	}
}

// text returns the lines that the terminal shows.
func (s *liveScreen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.vt.String()
}

// becomes resizes the terminal.
func (s *liveScreen) becomes(rows, columns uint16) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.vt.Resize(int(columns), int(rows))
	s.resize(s.T, rows, columns)
}

// press presses keys, one after the other.
func (s *liveScreen) press(keys ...string) {
	s.Helper()
	for _, key := range keys {
		if _, err := s.keyboard.WriteString(key); err != nil {
			s.Fatal(err)
		}
	}
}

// wants waits until the screen matches all the patterns.
func (s *liveScreen) wants(patterns ...string) {
	s.Helper()
	for _, pattern := range patterns {
		re := regexp.MustCompile(pattern)
		for deadline := time.Now().Add(waitLimit); !re.MatchString(s.text()); time.Sleep(10 * time.Millisecond) {
			select {
			case err := <-s.done:
				s.Fatalf("the program has ended with %v at\n%s", err, s.text())
			default:
			}
			if time.Now().After(deadline) {
				s.Fatalf("no %s in\n%s", pattern, s.text())
			}
		}
	}
}

// ends waits for the end of the program, and checks that the terminal is as it was before.
func (s *liveScreen) ends() {
	s.Helper()
	select {
	case err := <-s.done:
		if err != nil {
			s.Errorf("the program ends with %v", err)
		}
	case <-time.After(waitLimit):
		s.Fatalf("the program does not end at\n%s", s.text())
	}
	now, err := term.GetState(int(s.screen.Fd()))
	if err != nil || *now != *s.tty {
		s.Errorf("the state of the terminal was %v and is %v, %v", s.tty, now, err)
	}
	eventually(s.T, "the alternate screen is left, and the cursor is shown", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return !s.alt && !s.vt.CursorHidden() && bytes.Contains(s.raw.Bytes(), []byte("\x1b[?1049l"))
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.bad) > 0 {
		s.Errorf("the program %s", strings.Join(s.bad, ", "))
	}
}

// Keys, as terminals send them.
const enter, esc, down, ctrlC = "\r", "\x1b", "\x1b[B", "\x03"

// A person at a terminal sees two workers at work, looks into the lists, drains a worker and pauses the task type.
func TestTopOnATerminal(t *testing.T) {
	t.Parallel()
	db, dir := openOrders(t, testdb.URL(t, testdb.SQLite), 500)
	one, two := startWorker(t, dir), startWorker(t, dir)
	eventually(t, "both workers own queues", func() bool {
		return count(t, db, "(SELECT DISTINCT cur_server FROM schedule_queue WHERE cur_server IS NOT NULL) x") == 2
	})
	s := startTop(t, dir, "-c", "rota.yaml", "--watch=200ms")
	s.wants(`^\[1 tasks\]`, `(?m)^ TASK +STATE +QUEUES `, `(?m)^>settle +SERVING +4 .* 2 `, `PROBLEMS .*\n>.* none `)

	s.press(enter)
	s.wants(`queues of settle: 4; read`, `(?m)^>settle +0 +HELD`, `(?m)^ settle +3 +HELD`)
	s.press("s", "s", "S")
	s.wants(`by QUEUE, the greatest first`, `(?s)settle +3 .*settle +2 .*settle +1 .*>settle +0 `)
	var owner string
	if err := db.QueryRowContext(t.Context(), "SELECT cur_server FROM schedule_queue WHERE queue_id = '3'").Scan(&owner); err != nil {
		t.Fatal(err)
	}
	s.press("/", "held "+owner, enter)
	s.wants(`: 2 of 4; with held `+owner+`; by QUEUE`, `(?s)settle +3 +HELD.*\n>settle +\d +HELD`)
	s.press("/", "x")
	s.wants(`: 0 of 4; with held ` + owner + `x; by QUEUE`)
	s.press(enter, enter, "d") // there is no row
	s.press(esc)
	s.wants(`queues of settle: 4; by QUEUE`)
	s.press(enter)
	s.wants(`queues of settle: a row`, `(?m)^ REQUESTER +-`)
	s.press(esc)
	s.wants(`queues of settle: 4`)
	s.press(esc)
	s.wants(`(?m)^ tasks: 1; .*read`)

	s.press("2")
	s.wants(`(?m)^ workers: 2; `, `(?m)^>\S+ +\S+:\d+(:\w+)? +settle +SERVING`, `(?m)^  +\S+:\d+(:\w+)? +settle +SERVING`)
	s.press(down, "d")
	s.wants(`Drain \S+ of settle\? y yes  n no`, `would be drained; its 2 queues go to 1 other worker`, `2 queues would move`, `PLANNED`)
	s.press("x", enter, "n") // the first two are no answers
	s.wants(`(?m)^ workers: 2; `)
	if n := count(t, db, "schedule_server WHERE state = 'DRAINING'"); n != 0 {
		t.Errorf("%d workers drain after a no", n)
	}
	s.press("d")
	s.wants(`y yes  n no`)
	s.press("y")
	s.wants(`: drained; its 2 queues go to 1 other worker`)
	s.press(esc)
	s.wants(`(?m)^>.*settle +DRAINING +\S+ +0 `, `(?m)^ .*settle +SERVING +\S+ +4 `)
	s.press("d")
	s.wants(`Resume \S+ of settle\? y yes  n no`)
	s.press("y")
	s.wants(`: resumed; it may own queues again`)
	s.press(esc)
	s.wants(`(?m)^>.*settle +SERVING +\S+ +2 `)

	s.press("p")
	s.wants(`Pause settle\? y yes  n no`, `Its workers finish what they have in flight`)
	s.press("y")
	s.wants(`settle\$BASE: paused`)
	s.press("1")
	s.wants(`(?m)^>settle +PAUSED`)
	s.press("d")
	s.wants(`Not done: this row is about no worker`)
	s.press("5")
	s.wants(`(?m)^>\S+ +.* PAUSED `, `events: \d+`)
	s.press("?")
	s.wants(`(?m)^ enter +look into the row`)
	s.press("7")
	s.wants(`(?m)^.OK +DATABASE`)
	s.becomes(24, 80)
	for i, name := range []string{"tasks", "workers", "queues", "items", "events", "runs", "findings"} {
		s.press(fmt.Sprint(i + 1)) // neither the head nor the foot is cut
		s.wants(fmt.Sprintf(`^.*\[%d %s\].*\n %s: .*; read \S+Z, every 200ms\n`, i+1, name, name), `^.1 tasks.*7 findings\]? *\n`,
			`\n enter look into .* q quit *$`)
		if n := strings.Count(s.text(), "\n"); n != 23 {
			t.Errorf("%d lines break on a screen of 24:\n%s", n, s.text())
		}
	}
	s.becomes(12, 50)
	s.press("3")
	s.wants(`queues: 4`, `(?m)^ enter look into .*…$`)
	s.press("q")
	s.ends()
	for _, p := range []*process{one, two} {
		p.signal(syscall.SIGTERM)
		p.exit()
	}
}

// However the program ends, the terminal is as it was.
func TestTopRestoresTheTerminal(t *testing.T) {
	t.Parallel()
	r := newTestRoster(t, testdb.URL(t, testdb.SQLite))
	for name, end := range map[string]func(*liveScreen){
		"q":                      func(s *liveScreen) { s.press("q") },
		"Ctrl-C":                 func(s *liveScreen) { s.press(ctrlC) },
		"Ctrl-C in a filter":     func(s *liveScreen) { s.press("/", "q", ctrlC) },
		"Ctrl-C at a question":   func(s *liveScreen) { s.press("p"); s.wants(`y yes`); s.press(ctrlC) },
		"SIGTERM":                func(s *liveScreen) { r.must(s.cmd.Process.Signal(syscall.SIGTERM)) },
		"SIGINT":                 func(s *liveScreen) { r.must(s.cmd.Process.Signal(os.Interrupt)) },
		"SIGTERM, in a question": func(s *liveScreen) { s.press("p"); s.wants(`y yes`); r.must(s.cmd.Process.Signal(syscall.SIGTERM)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startTop(t, r.dir, "settle", "--database", r.url)
			s.wants(`tasks of settle: 1; .*read \d`)
			end(s)
			s.ends()
		})
	}
}

// A role that may only read sees everything, and gets one line when it wants to change something.
func TestTopOfARoleThatMayOnlyRead(t *testing.T) {
	t.Parallel()
	r := newTestRoster(t, testdb.URL(t, testdb.Postgres))
	s := startTop(t, r.dir, "--database", readerOf(t, r), "--watch=200ms")
	s.wants(`(?m)^>regions +UNSERVED .*UNSERVED`, `(?m)^ settle +SERVING`)
	s.press("2")
	s.wants(`workers: 2`)
	s.press("d")
	s.wants(`Drain web1:1 of settle\? y yes`)
	s.press("y")
	s.wants(`(?m)^Not done: .*permission denied`)
	s.press(esc)
	s.wants(`(?m)^>web1 +web1:1\S* +settle +SERVING`)
	s.press("q")
	s.ends()
}

// The screen goes on through an outage. It says so, and since when what it shows is old.
func TestTopThroughAnOutage(t *testing.T) {
	t.Parallel()
	through, proxy := testdb.Through(t, testdb.URL(t, testdb.Postgres))
	r := newTestRoster(t, through)
	s := startTop(t, r.dir, "--database", through, "--watch=200ms")
	s.wants(`(?m)^ settle +SERVING`)
	proxy.Refuse(true)
	proxy.Reset()
	s.wants(`(?m)^ no answer; read \d\d:\d\d:\d\dZ, \d+s ago; trying again in \d+s: `, `(?m)^ settle +SERVING`)
	s.press("3")
	s.wants(`no answer; not read yet`)
	proxy.Refuse(false)
	s.wants(`(?m)^ queues: 6; read`)
	s.press("q")
	s.ends()
}

// No list, no look into a row and no question shows a control character of the database.
func TestTopShowsNoHostileText(t *testing.T) {
	t.Parallel()
	r := newHostileRoster(t, testdb.URL(t, testdb.SQLite))
	s := startTop(t, r.dir, "--database", r.url)
	for _, tab := range []string{"1", "2", "3", "4", "5", "6", "7"} {
		s.press(tab)
		s.wants(`\[`+tab+` `, `; read \d`)
		if tab != "7" {
			s.wants(`\\x1b\]0;x`)
		}
		s.press(enter)
		s.wants(`esc back|queues of`)
		for _, key := range []string{"p", "d"} {
			s.press(tab)
			s.wants(`; read \d`) // the question before is gone
			s.press(key)
			s.wants(`y yes|Not done`)
			s.press("n")
		}
		s.press(tab)
		s.wants(`; read \d`)
		s.press("/", "=\\x1b", enter)
	}
	s.press("q")
	s.ends()
	s.mu.Lock()
	defer s.mu.Unlock()
	rest := regexp.MustCompile(`\x1b\[[0-9;:?<>=]*[ $]?[a-zA-Z@]|\x1b[=>78M]|\x1b[()]B|\r|\x08`).ReplaceAllString(s.raw.String(), "")
	if i := strings.IndexFunc(rest, func(r rune) bool {
		return r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 || slices.Contains([]rune(hostile), r) && r > 0x7f
	}); i >= 0 {
		t.Errorf("the terminal got %q", rest[max(0, i-50):min(len(rest), i+50)])
	}
}

// With --once the tables are printed once on a terminal as well, without a screen.
func TestTopOnceOnATerminal(t *testing.T) {
	t.Parallel()
	r := newTestRoster(t, testdb.URL(t, testdb.SQLite))
	shown := newTerminal(t).shown(t, func(screen *os.File) {
		cmd := rota(t.Context(), r.dir, "top", "--once", "--database", r.url)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = screen, screen, screen
		if err := cmd.Run(); err != nil {
			t.Error(err)
		}
	})
	if strings.Count(shown, " TASK ") != 2 || strings.Contains(shown, "\x1b[?") {
		t.Errorf("%q", shown)
	}
}

// readerOf returns a URL of the roster on PostgreSQL for a role that may only read.
func readerOf(t *testing.T, r *testRoster) string {
	t.Helper()
	role := fmt.Sprintf("reader_%d", rand.Uint32())
	r.exec("CREATE ROLE " + role + " LOGIN PASSWORD 'secret'")
	r.exec("GRANT SELECT ON ALL TABLES IN SCHEMA public TO " + role)
	t.Cleanup(func() { // roles belong to the server, which other tests share
		ctx := context.WithoutCancel(t.Context())
		for _, statement := range []string{"DROP OWNED BY " + role, "DROP ROLE " + role} {
			if _, err := r.c.DB().ExecContext(ctx, statement); err != nil {
				t.Error(err)
			}
		}
	})
	u, err := url.Parse(r.url)
	r.must(err)
	u.User = url.UserPassword(role, "secret")
	return u.String()
}
