package roster

import (
	"testing"
	"time"
)

// The text says when the server itself may take over, by its own watch or by the watch that it has inherited (S7).
func TestPendingHandoverSaysWhenQueuesAreTakenOver(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		silent, watched, registered int // seconds; judge_dead_interval is 10 s
		want                        string
	}{
		"a watcher of long standing": {6, 60, 60, "last heartbeat 6s ago; taken over in 4s"},
		"silent for long enough": {
			11, 60, 60, "last heartbeat 11s ago; taken over with the next heartbeat",
		},
		"the only worker, just started":            {40, 0, 0, "last heartbeat 40s ago; taken over in 10s"},
		"the only worker, after 8 s":               {48, 8, 8, "last heartbeat 48s ago; taken over in 2s"},
		"a watch that began anew":                  {12, 3, 60, "last heartbeat 12s ago; taken over in 7s"},
		"an inherited watch":                       {12, 60, 2, "last heartbeat 12s ago; taken over in 3s"},
		"an inherited watch, and longer silence":   {16, 60, 2, "last heartbeat 16s ago; taken over with the next heartbeat"},
		"an inherited watch, its own is over soon": {11, 60, 9, "last heartbeat 11s ago; taken over in 1s"},
	} {
		w := PendingHandover{
			Owner: "web1:4711:0000ab12", Queues: 1, FirstQueue: "3", JudgeDeadInterval: 10 * time.Second,
			SilentFor: time.Duration(test.silent) * time.Second, Watched: time.Duration(test.watched) * time.Second,
			Registered: time.Duration(test.registered) * time.Second,
		}
		if got, want := w.String(), "queue 3 is held by web1:4711, "+test.want; got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}
