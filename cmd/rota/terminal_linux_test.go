package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/dutyrota/rota/cmd/rota/internal/daemon"
	"github.com/dutyrota/rota/cmd/rota/internal/redact"
	"github.com/dutyrota/rota/internal/escape"
	"github.com/dutyrota/rota/internal/failures"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
)

// terminal is a pseudo terminal. Programs write to screen, and the test reads what they show from keyboard.
type terminal struct{ keyboard, screen *os.File }

func newTerminal(t *testing.T) terminal {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = keyboard.Close() }) // a test may close it earlier
	var unlocked, n int32
	control(t, keyboard, syscall.TIOCSPTLCK, &unlocked)
	control(t, keyboard, syscall.TIOCGPTN, &n)
	screen, err := os.OpenFile("/dev/pts/"+strconv.Itoa(int(n)), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = screen.Close() })
	return terminal{keyboard, screen}
}

func control(t *testing.T, f *os.File, request uintptr, value *int32) {
	t.Helper()
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), request, uintptr(unsafe.Pointer(value))); errno != 0 {
		t.Fatal(errno)
	}
}

// shown returns what the terminal has shown when write returns.
func (term terminal) shown(t *testing.T, write func(screen *os.File)) string {
	t.Helper()
	read := make(chan string, 1)
	go func() {
		text, err := io.ReadAll(term.keyboard)
		if err != nil && !errors.Is(err, syscall.EIO) { // the end of a terminal
			text = []byte(err.Error())
		}
		read <- string(text)
	}()
	write(term.screen)
	if err := term.screen.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case text := <-read:
		return text
	case <-time.After(waitLimit):
		t.Fatal("the terminal does not end")
		return ""
	}
}

// styling matches what the program itself writes to a terminal: colours, moves of the cursor and erasing.
var styling = regexp.MustCompile(`\x1b\[(3[0-9]|0)?m|\x1b\[\?25[lh]|\x1b\[2?J|\x1b\[[HK]|\r`)

func wantStylingOnly(t *testing.T, what, shown string) {
	t.Helper()
	if rest := styling.ReplaceAllString(shown, ""); escape.Lines(rest) != rest {
		t.Errorf("%s: %q", what, shown)
	}
	if !strings.Contains(shown, `\x1b]0;x`) {
		t.Errorf("%s does not show the hostile text: %q", what, shown)
	}
}

// On a terminal there is the program's own styling, and nothing of the database.
func TestTerminalShowsNoHostileText(t *testing.T) {
	t.Parallel()
	s := newHostileRoster(t, testdb.URL(t, testdb.SQLite))
	for _, command := range []string{
		"task list", "task show TASK", "queue list", "worker list", "item list", "event list", "run list", "run show RUN",
		"run wait RUN --timeout 1s", "trigger list", "plan TASK", "doctor", "top --once", "trigger delete TRIGGER", "task pause nope\x1b]0;x",
	} {
		term := newTerminal(t)
		if _, err := term.keyboard.WriteString("n\n"); err != nil {
			t.Fatal(err)
		}
		shown := term.shown(t, func(screen *os.File) {
			cmd := rota(t.Context(), s.dir, sweepArgs(command, s.url)...)
			cmd.Stdin, cmd.Stdout, cmd.Stderr = screen, screen, screen
			if err := cmd.Start(); err != nil {
				t.Error(err)
				return
			}
			_ = cmd.Wait() // some commands end with an error
		})
		wantStylingOnly(t, "rota "+command, shown)
	}
}

// A verb that asks shows its dry run before, and changes nothing after another answer than yes.
func TestQuestionShowsTheDryRun(t *testing.T) {
	t.Parallel()
	s := newTestRoster(t, testdb.URL(t, testdb.SQLite))
	s.runs()
	const deletion = "trigger delete nightly"
	preview := s.run(deletion + " --dry-run")
	for _, answer := range []string{"n\n", "y\n"} {
		term := newTerminal(t)
		if _, err := term.keyboard.WriteString(answer); err != nil {
			t.Fatal(err)
		}
		shown := term.shown(t, func(screen *os.File) {
			cmd := rota(t.Context(), s.dir, append(strings.Fields(deletion), "--database", s.url)...)
			cmd.Stdin, cmd.Stdout, cmd.Stderr = screen, screen, screen
			_ = cmd.Run() // it fails after a no
		})
		words := strings.Join(strings.Fields(shown), " ")
		if want := strings.Join(strings.Fields(preview), " ") + " Continue? [y/N]"; !strings.Contains(words, want) {
			t.Errorf("the question is\n%s\nand lacks\n%s", shown, preview)
		}
		if left := count(t, s.c.DB(), "schedule_trigger") > 0; left != (answer == "n\n") {
			t.Errorf("after the answer %q the trigger is left: %t", answer, left)
		}
	}
}

// The log is text on a terminal. Its messages and fields are escaped.
func TestLogOnATerminal(t *testing.T) {
	for _, noColor := range []string{"", "1"} {
		t.Setenv("NO_COLOR", noColor)
		shown := newTerminal(t).shown(t, func(screen *os.File) {
			log := daemon.NewLogger(screen, redact.URLs)
			log.WithError(errors.New(hostile)).WithField("server", hostile).Warn("expired " + hostile)
		})
		wantStylingOnly(t, "the log", shown)
		if !strings.Contains(shown, `expired =\x1b]0;x`) && !strings.Contains(shown, `expired =\\x1b]0;x`) {
			t.Errorf("%q", shown)
		}
	}
}

// A terminal gets the lines of the demo as a pipe does, in colours, so that nothing that it has printed is lost.
func TestDemoOnATerminal(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "rota") // the race detector would slow the workers of the test's own binary down
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	shown := newTerminal(t).shown(t, func(screen *os.File) {
		cmd := rota(t.Context(), t.TempDir(), "demo")
		cmd.Path, cmd.Args[0] = program, program
		cmd.Env = append(cmd.Env, "NO_COLOR=", "TERM=xterm")
		cmd.Stdout, cmd.Stderr = screen, screen
		if err := cmd.Run(); err != nil {
			t.Error(err)
		}
	})
	for _, want := range []string{
		"you can watch. This is no benchmark",
		`== worker 2 is killed`,
		`\x1b\[31mEXPIRED\x1b\[0m .*worker 2`,
		`ok     each order took effect exactly once`,
		`EPOCH rises with each change of the owner`,
	} {
		if !regexp.MustCompile(want).MatchString(shown) {
			t.Errorf("no %s in\n%q", want, shown)
		}
	}
	if rest := regexp.MustCompile(`\x1b\[\d+m`).ReplaceAllString(shown, ""); strings.Contains(rest, "\x1b") {
		t.Errorf("escape sequences other than colours in\n%q", shown)
	}
}

// Many failed items are changed in steps. On a terminal the command says how far it is, and erases that at its end.
func TestProgressOnATerminal(t *testing.T) {
	t.Parallel()
	s := newTestRoster(t, testdb.URL(t, testdb.SQLite))
	items := make([]failures.Item, 12_000)
	for i := range items {
		items[i] = failures.Item{Key: strconv.Itoa(i), QueueID: "0", State: ops.ItemDead}
		if i >= 6_000 {
			items[i].QueueID, items[i].State = "1", ops.ItemRetry
		}
	}
	for task, steps := range map[string][][3]string{
		"settle": {
			{"item retry settle --all --state dead", "settle$BASE: 2000 failed items retried so far; 2000 examined; 33 %; about ", "settle$BASE: 6000 failed items retried\n"},
			{"item drop settle --all --queue 0 --yes", "settle$BASE: 5000 failed items forgotten so far; 5000 examined\x1b[K", "settle$BASE: 6000 failed items forgotten\n"},
		},
		"regions": {{"task delete regions --yes", "regions: 5000 failed items deleted so far\x1b[K", "regions: deleted\n"}},
	} {
		s.must(failures.Of(s.c.Roster()).Save(t.Context(), task, items))
		for _, step := range steps {
			var stdout strings.Builder
			shown := newTerminal(t).shown(t, func(screen *os.File) {
				cmd := rota(t.Context(), s.dir, sweepArgs(step[0], s.url)...)
				cmd.Stdout, cmd.Stderr = &stdout, screen
				if err := cmd.Run(); err != nil {
					t.Error(err)
				}
			})
			shown, _, _ = strings.Cut(shown, "rota: An item") // the note of a drop stays
			if !strings.Contains(shown, "\r"+step[1]) || !strings.HasSuffix(shown, "\r\x1b[K") || stdout.String() != step[2] {
				t.Errorf("%s: the terminal shows %q, want %q; stdout %q, want %q", step[0], shown, step[1], stdout.String(), step[2])
			}
		}
	}
}
