package plural

import "testing"

func TestOf(t *testing.T) {
	for n, want := range map[int64]string{0: "0 queues", 1: "1 queue", 2: "2 queues", 1234567: "1234567 queues"} {
		if got := Of(n, "queue", "queues"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
