package center

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dutyrota/rota/center/sqlite"
)

// X9: a caller that gives up while it sends its hint loses none of the hints that others have joined to it, and neither
// does a task type whose row cannot be written. A hint waits for other writers.
func TestHintsOfOthersAreSent(t *testing.T) {
	c, err := Open(t.Context(), sqlite.URL("sqlite:"+filepath.Join(t.TempDir(), "rota.db")), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	exec := func(query string) {
		t.Helper()
		if _, err := c.db.Exec(t.Context(), query); err != nil {
			t.Fatal(err)
		}
	}
	for _, task := range []string{"first", "refused", "second"} {
		exec(`INSERT INTO schedule_task_type (task_type, hinted) VALUES ('` + task + `', TRUE)`)
	}
	exec(`CREATE TRIGGER refuse BEFORE UPDATE ON schedule_task_type WHEN new.task_type = 'refused'
		BEGIN SELECT RAISE(ABORT, 'no'); END`)
	writer, err := c.db.Begin(t.Context(), c.db.Dealers) // it has the lock of all writers
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Rollback()

	c.sender.turn <- struct{}{}
	var callers sync.WaitGroup
	gives, giveUp := context.WithCancel(t.Context())
	errs := make(chan error, 2)
	callers.Go(func() { errs <- c.Wake(gives, "refused") })
	time.Sleep(100 * time.Millisecond) // so that it gets the turn; otherwise the test proves less
	callers.Go(func() { errs <- c.Wake(t.Context(), "second") })
	for joined := 0; joined < 2; {
		h := <-c.sender.pending
		if joined = 0; h != nil {
			joined = len(h.list)
		}
		c.sender.pending <- h
	}
	<-c.sender.turn
	giveUp()
	time.Sleep(700 * time.Millisecond) // longer than busy_timeout for two statements
	writer.Rollback()
	callers.Wait()
	versions, err := c.roster.HintVersions(t.Context(), []string{"first", "second"})
	if err != nil || versions["first"] != 0 || versions["second"] != 1 {
		t.Errorf("versions %v, %v, want a hint for second; the callers got %v and %v", versions, err, <-errs, <-errs)
	}
}

// X9: the hints that others join to that of a caller leave the keys of its slice as they are.
func TestHintsOfOthersLeaveTheKeysOfACaller(t *testing.T) {
	keys := []string{"1", "2", "3", "4"}
	h := &hints{}
	h.add(Hint{TaskType: "bill", Keys: keys[:2]})
	h.add(Hint{TaskType: "bill", Keys: []string{"9"}})
	h.add(Hint{TaskType: "bill", Keys: keys[2:]})
	if got := strings.Join(h.list[0].Keys, " "); got != "1 2 9 3 4" || strings.Join(keys, " ") != "1 2 3 4" {
		t.Errorf("hints for %s, and the caller has %s", got, keys)
	}
}
