package manager_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/internal/racetest"
)

// A server that cannot join for ten minutes logs one line a minute, with the number of failures, and not one line per
// attempt.
func TestFailedRegistrationsAreLoggedOncePerMinute(t *testing.T) {
	racetest.Defer(t)
	inBubble(t, func(cl *cluster) {
		a := cl.start("a", nil, fast)
		time.Sleep(5 * time.Second)
		cl.exec("CREATE TRIGGER no_join BEFORE INSERT ON schedule_server BEGIN SELECT RAISE(ABORT, 'no join'); END")
		cl.exec("DELETE FROM schedule_server")
		time.Sleep(10 * time.Minute)
		cl.exec("DROP TRIGGER no_join")
		time.Sleep(10 * time.Second)
		cl.wantOwners(6)
		log := cl.logged.String()
		lines, failures := 0, 1
		for _, line := range regexp.MustCompile(`registration failed; trying again".*`).FindAllString(log, -1) {
			lines++
			if count := regexp.MustCompile(` count=(\d+)`).FindStringSubmatch(line); count != nil {
				n, _ := strconv.Atoi(count[1]) // the expression finds digits only
				failures += n
			}
			if !strings.Contains(line, "no join") {
				t.Errorf("a line without an example: %s", line)
			}
		}
		if lines < 10 || lines > 12 || failures < 250 || failures > 310 { // a try every two seconds
			cl.Errorf("%d lines with %d failures in ten minutes, want a line per minute and a failure every two seconds:\n%s", lines, failures, log)
		}
		if err := cl.leave(a); err != nil {
			cl.Fatal(err)
		}
	})
}
