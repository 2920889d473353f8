package roster

import "testing"

// F11: two queues of a division share items if a number belongs to both, and queues of two divisions always may.
func TestItemsMayShare(t *testing.T) {
	t.Parallel()
	const most = 12
	for total := 1; total <= most; total++ {
		for index := range total {
			for otherTotal := 1; otherTotal <= most; otherTotal++ {
				for otherIndex := range otherTotal {
					both := false
					for item := range total * otherTotal {
						both = both || item%total == index && item%otherTotal == otherIndex
					}
					a, b := Items{"x", index, total}, Items{"x", otherIndex, otherTotal}
					if got := a.mayShare(b); got != both {
						t.Errorf("queue %s and queue %s share items: %t, want %t", a, b, got, both)
					}
				}
			}
		}
	}
	for _, c := range []struct {
		a, b Items
		want bool
	}{
		{Items{"x", 0, 2}, Items{"y", 1, 2}, true},
		{Items{"x", 0, 0}, Items{"x", 1, 0}, false}, // names
		{Items{"x", 0, 0}, Items{"x", 0, 0}, false},
		{Items{"x", 0, 0}, Items{"y", 1, 0}, true},
		{Items{"x", 0, 0}, Items{"x", 1, 2}, true}, // a name and a number
		{Items{"x", 1, 2}, Items{"x", 0, 0}, true},
	} {
		if got := c.a.mayShare(c.b); got != c.want {
			t.Errorf("%+v and %+v share items: %t, want %t", c.a, c.b, got, c.want)
		}
	}
}
