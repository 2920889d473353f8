package manager_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/internal/racetest"
)

// S1: a database that refuses what people read about a server, such as the text of an error that its encoding lacks,
// does not end the server's lease. The log says so once, and again when the database takes it. The history has the last
// statistics of a server that has left.
func TestRefusedStatisticsCostNoLease(t *testing.T) {
	racetest.Skip(t)
	inBubble(t, func(cl *cluster) {
		cl.exec(`CREATE TRIGGER refuse BEFORE UPDATE OF last_error ON schedule_server BEGIN SELECT RAISE(ABORT, 'no such letter'); END`)
		w := cl.start("a", nil, fast)
		time.Sleep(5 * time.Minute)
		n := cl.executed("a")
		if err := w.Ready(); err != nil || n < 1000 {
			cl.Fatalf("%d items in five minutes, ready: %v; want more than 1000 and a server that is ready", n, err)
		}
		wantLogged := func(text string) {
			cl.Helper()
			if got := strings.Count(cl.logged.String(), text); got != 1 {
				cl.Errorf("logged %q %d times, want once:\n%s", text, got, cl.logged)
			}
		}
		wantLogged("statistics not written")
		if strings.Contains(cl.logged.String(), "lease expired") {
			cl.Errorf("the lease has expired:\n%s", cl.logged)
		}
		cl.exec(`DROP TRIGGER refuse`)
		time.Sleep(20 * time.Second)
		wantLogged("statistics are written again")
		var counted int
		if cl.scan("SELECT success_count FROM schedule_server", &counted); counted < n {
			cl.Errorf("success_count is %d, want at least %d", counted, n)
		}
		time.Sleep(3 * time.Second) // shorter than the pause between two writes
		if err := cl.leave(w); err != nil {
			cl.Fatal(err)
		}
		if cl.scan("SELECT success_count FROM schedule_server_history", &counted); counted != cl.executed("a") {
			cl.Errorf("success_count in the history is %d, want %d", counted, cl.executed("a"))
		}
	})
}
