package center_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

// ear receives the hints of a Center.
type ear struct {
	c       *center.Center
	hints   chan center.Hint
	changes chan error
}

func openEar(t *testing.T, url, ownSign string) ear {
	t.Helper()
	c, err := center.Open(t.Context(), anydb.URL(url), center.Options{Schema: center.SchemaCreate, OwnSign: ownSign})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return listen(t, c)
}

func listen(t *testing.T, c *center.Center) ear {
	t.Helper()
	e := ear{c, make(chan center.Hint, 1000), make(chan error, 100)}
	ctx, cancel := context.WithCancel(t.Context())
	var listening sync.WaitGroup
	listening.Go(func() {
		hinted := func() []string { return []string{"settle"} }
		err := c.Listen(ctx, hinted, func(err error) { e.changes <- err }, func(h center.Hint) { e.hints <- h })
		if err != nil {
			t.Errorf("Listen: %v", err)
		}
	})
	t.Cleanup(func() {
		cancel()
		listening.Wait()
	})
	return e
}

func (e ear) hears(t *testing.T) {
	t.Helper()
	for {
		select {
		case err := <-e.changes:
			if err == nil {
				return
			}
		case <-time.After(30 * time.Second):
			t.Fatal("no hints arrive")
		}
	}
}

// next returns the next hint, or none after a while.
func (e ear) next(wait time.Duration) (h center.Hint) {
	select {
	case h = <-e.hints:
	case <-time.After(wait):
	}
	return h
}

// X9: Wake reaches the other processes of the environment, WakeInTx with the commit.
func TestWakeReachesTheEnvironment(t *testing.T) {
	url := testdb.URL(t, testdb.Postgres)
	e := openEar(t, url, "TEST")
	other := openEar(t, url, "OTHER")
	e.hears(t)
	other.hears(t)
	if err := e.c.Wake(t.Context(), "settle", "7", "north"); err != nil {
		t.Fatal(err)
	}
	if h := e.next(10 * time.Second); h.TaskType != "settle" || !slices.Equal(h.Keys, []string{"7", "north"}) {
		t.Errorf("hint %+v", h)
	}
	for _, commit := range []bool{false, true} {
		tx, err := e.c.DB().BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := e.c.WakeInTx(t.Context(), tx, "settle", fmt.Sprint(commit)); err != nil {
			t.Fatal(err)
		}
		if h := e.next(200 * time.Millisecond); h.TaskType != "" {
			t.Errorf("hint %+v before the end of its transaction", h)
		}
		end := tx.Rollback
		if commit {
			end = tx.Commit
		}
		if err := end(); err != nil {
			t.Fatal(err)
		}
	}
	if h := e.next(10 * time.Second); !slices.Equal(h.Keys, []string{"true"}) {
		t.Errorf("hint %+v, want that of the transaction that has committed", h)
	}
	if _, err := ops.New(e.c).Tasks().Define(t.Context(), "import", center.Settings{Mode: center.ModeRun, Queues: 1}); err != nil {
		t.Fatal(err)
	}
	tx := centertest.Begin(t, e.c)
	_, _, err := e.c.Engine().Runs.SubmitTx(t.Context(), tx, "import", runs.Submission{})
	if err == nil {
		err = tx.Commit()
	}
	if h := e.next(10 * time.Second); err != nil || h.TaskType != "import" {
		t.Errorf("hint %+v of a transaction that has submitted a run: %v", h, err)
	}
	keys := make([]string, 3000)
	for i := range keys {
		keys[i] = fmt.Sprint("queue", i)
	}
	if err := e.c.Wake(t.Context(), "settle", keys...); err != nil {
		t.Fatal(err)
	}
	if h := e.next(10 * time.Second); h.TaskType != "settle" || h.Keys != nil {
		t.Errorf("hint %+v, want one for all queues", h)
	}
	if h := other.next(0); h.TaskType != "" {
		t.Errorf("hint %+v of another environment", h)
	}
}

// X9: dealers that have all of their connections in use keep no hint from being sent or heard.
func TestHintsNeedNoConnectionOfDealers(t *testing.T) {
	c, err := center.Open(t.Context(), anydb.URL(testdb.URL(t, testdb.Postgres)),
		center.Options{Schema: center.SchemaCreate, DealerConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	tx, err := c.DB().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() }) // its error does not matter
	e := listen(t, c)
	e.hears(t)
	if err := c.Wake(t.Context(), "settle"); err != nil {
		t.Error(err)
	}
	if h := e.next(10 * time.Second); h.TaskType != "settle" {
		t.Errorf("hint %+v, want settle", h)
	}
}

// X9: hints for so many task types that one notification has no room for them are sent in several.
func TestHintsForManyTaskTypes(t *testing.T) {
	e := openEar(t, testdb.URL(t, testdb.Postgres), "TEST")
	e.hears(t)
	const n = 300
	var callers sync.WaitGroup
	for i := range n {
		callers.Go(func() {
			if err := e.c.Wake(t.Context(), fmt.Sprintf("a task type with a long name, number %d", i)); err != nil {
				t.Error(err)
			}
		})
	}
	callers.Wait()
	heard := map[string]bool{}
	for len(heard) < n && !t.Failed() {
		h := e.next(10 * time.Second)
		if heard[h.TaskType] = true; h.TaskType == "" {
			t.Fatalf("%d task types of %d", len(heard), n)
		}
	}
}

// X9: hints that come while one is sent are sent together, and none is lost.
func TestHintsAreSentTogether(t *testing.T) {
	e := openEar(t, testdb.URL(t, testdb.Postgres), "TEST")
	e.hears(t)
	const n = 200
	var callers sync.WaitGroup
	for i := range n {
		callers.Go(func() {
			if err := e.c.Wake(t.Context(), "settle", fmt.Sprint(i)); err != nil {
				t.Error(err)
			}
		})
	}
	callers.Wait()
	heard, sent := map[string]bool{}, 0
	for len(heard) < n {
		h := e.next(10 * time.Second)
		if h.TaskType == "" {
			t.Fatalf("%d keys of %d", len(heard), n)
		}
		sent++
		for _, k := range h.Keys {
			heard[k] = true
		}
	}
	if sent > n/2 {
		t.Errorf("%d notifications for %d hints at once", sent, n)
	}
}

// X9: a process that hears hints tells servers, the last ones also while it stops. One that does not hear tells nothing.
// Servers that do not fit into a notification are not told.
func TestTell(t *testing.T) {
	url := testdb.URL(t, testdb.Postgres)
	e := openEar(t, url, "TEST")
	e.hears(t)
	c, err := center.Open(t.Context(), anydb.URL(url), center.Options{OwnSign: "TEST"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c.Tell("web1") {
		t.Error("a process tells that does not listen")
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	hears, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- c.Listen(ctx, nil, func(error) { close(hears) }, func(center.Hint) {}) }()
	<-hears
	many := make([]string, 3000)
	for i := range many {
		many[i] = fmt.Sprint("web", i)
	}
	c.Tell(many...)
	if h := e.next(10 * time.Second); h.OwnSign != "TEST" || len(h.Servers) > 0 || len(h.Keys) > 0 || h.TaskType != "" {
		t.Errorf("hint %+v, want one for no servers", h)
	}
	if c.Tell("web2", "web1"); !c.Tell("web2") {
		t.Error("a process that listens does not tell")
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	var told []string
	for len(told) < 2 {
		h := e.next(10 * time.Second)
		if len(h.Servers) == 0 {
			t.Fatalf("told %q, and hint %+v, want both servers", told, h)
		}
		told = append(told, h.Servers...)
	}
	if c.Tell("web3") {
		t.Error("a process tells that listens no more")
	}
}

// X9: two Managers of a program may share a Center. It tells servers as long as one of them hears hints.
func TestTellWhileAnotherListens(t *testing.T) {
	e := openEar(t, testdb.URL(t, testdb.Postgres), "TEST")
	e.hears(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	hears, ended := make(chan struct{}), make(chan error, 1)
	changed := sync.OnceFunc(func() { close(hears) })
	go func() { ended <- e.c.Listen(ctx, nil, func(error) { changed() }, func(center.Hint) {}) }()
	<-hears
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if !e.c.Tell("web1") {
		t.Error("a process tells nothing any more, because one of its two listeners has ended")
	}
	if h := e.next(10 * time.Second); !slices.Equal(h.Servers, []string{"web1"}) {
		t.Errorf("hint %+v, want one for web1", h)
	}
}

// X12: a hint for what is no name of a task type is refused. It would fail the hints that are sent with it, or the
// transaction that sends it.
func TestWakeRefusesBadNames(t *testing.T) {
	testdb.Each(t, func(t *testing.T, url string) {
		c := centertest.Open(t, url, center.Options{})
		tx, err := c.DB().BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		for _, name := range []string{"", "a\x00", "a\xff", strings.Repeat("a", 10_000)} {
			err, errInTx := c.Wake(t.Context(), name), c.WakeInTx(t.Context(), tx, name)
			if err == nil || errInTx == nil || len(err.Error()) > 200 || strings.Contains(err.Error(), "pq:") {
				t.Errorf("%.10q: errors %v and %v, want those of a name", name, err, errInTx)
			}
		}
		if err := tx.Commit(); err != nil {
			t.Errorf("the transaction: %v", err)
		}
	})
}

// X9: a listener whose connection is lost says so, and connects again.
func TestListenerConnectsAgain(t *testing.T) {
	e := openEar(t, testdb.URL(t, testdb.Postgres), "TEST")
	e.hears(t)
	const end = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'`
	if _, err := e.c.DB().ExecContext(t.Context(), end); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-e.changes:
		if err == nil {
			t.Error("the loss was not told")
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the loss was not noticed")
	}
	e.hears(t)
	if err := e.c.Wake(t.Context(), "settle"); err != nil {
		t.Fatal(err)
	}
	if h := e.next(10 * time.Second); h.TaskType != "settle" {
		t.Errorf("hint %+v", h)
	}
}

// X9: behind PgBouncer in transaction mode a listener finds that it hears nothing.
func TestNoHintsBehindPgBouncer(t *testing.T) {
	e := openEar(t, pgBouncerURL(t), "TEST")
	select {
	case err := <-e.changes:
		if !errors.Is(err, center.ErrNoHints) {
			t.Errorf("error %v, want ErrNoHints", err)
		}
	case <-time.After(30 * time.Second):
		t.Error("the listener says nothing")
	}
	if err := e.c.Wake(t.Context(), "settle"); err != nil {
		t.Error(err)
	}
}

// X9: where the database sends no notifications, Wake reaches the workers of a hinted task type by its row, and nobody
// else. A hint that was left before is not heard.
func TestHintsInRows(t *testing.T) {
	for _, kind := range []string{testdb.SQLite, testdb.MySQL, testdb.MariaDB} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			url := testdb.URL(t, kind)
			c, err := center.Open(t.Context(), anydb.URL(url), center.Options{Schema: center.SchemaCreate})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			for task, hinted := range map[string]bool{"settle": true, "notify": false} {
				if _, err := ops.New(c).Tasks().Define(t.Context(), task, center.Settings{Queues: 2, Hinted: hinted}); err != nil {
					t.Fatal(err)
				}
			}
			wake := func(task string, want int64) {
				t.Helper()
				if err := c.Wake(t.Context(), task, "7"); err != nil {
					t.Error(err)
				}
				versions, err := c.Roster().HintVersions(t.Context(), []string{"settle", "notify", "absent"})
				if err != nil || len(versions) != 2 || versions["notify"] != 0 || versions["settle"] != want {
					t.Errorf("versions %v, error %v, want settle at %d", versions, err, want)
				}
			}
			wake("settle", 1)
			e := openEar(t, url, "")
			e.hears(t)
			wake("notify", 1)
			wake("absent", 1)
			wake("settle", 2)
			if h := e.next(30 * time.Second); h.TaskType != "settle" || len(h.Keys) != 0 || h.OwnSign != e.c.OwnSign() {
				t.Errorf("hint %+v, want one for all queues of settle", h)
			}
			if h := e.next(2 * time.Second); h.TaskType != "" {
				t.Errorf("one more hint: %+v", h)
			}
			if e.c.Tell("a") {
				t.Error("servers are told where no notifications are")
			}
			centertest.Exec(t, c, "ALTER TABLE schedule_task_type RENAME TO hidden")
			select {
			case err := <-e.changes:
				if err == nil {
					t.Error("the listener hears although it cannot read")
				}
			case <-time.After(30 * time.Second):
				t.Error("the listener does not say that it cannot read")
			}
			centertest.Exec(t, c, "ALTER TABLE hidden RENAME TO schedule_task_type")
			e.hears(t)
			wake("settle", 3)
			if h := e.next(30 * time.Second); h.TaskType != "settle" {
				t.Errorf("hint %+v after an interruption, want settle", h)
			}
		})
	}
}
