//go:build unix

package daemon

import (
	"os"
	"strconv"
	"testing"
	"time"
)

func TestWatchdogInterval(t *testing.T) {
	for _, test := range []struct {
		usec, pid string
		want      time.Duration
	}{
		{"", "", 0},
		{"30000000", "", 15 * time.Second},
		{"30000000", strconv.Itoa(os.Getpid()), 15 * time.Second},
		{"30000000", "1", 0},
		{"0", "", 0},
		{"-5", "", 0},
		{"soon", "", 0},
		{"1", "", time.Millisecond},
	} {
		t.Setenv("WATCHDOG_USEC", test.usec)
		t.Setenv("WATCHDOG_PID", test.pid)
		if got := watchdogInterval(); got != test.want {
			t.Errorf("WATCHDOG_USEC=%s WATCHDOG_PID=%s: %s, want %s", test.usec, test.pid, got, test.want)
		}
	}
}
