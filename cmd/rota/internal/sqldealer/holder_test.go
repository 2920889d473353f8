package sqldealer

import (
	"testing"

	"github.com/dutyrota/rota/internal/testdb"
)

// FindHolder finds the session whose transaction holds the horizon back: the oldest one that has written.
func TestFindHolder(t *testing.T) {
	s := openShop(t, testdb.Reused(t, testdb.Postgres))
	s.sell()
	d := s.dealer(xidSales)
	find := func() *Holder {
		t.Helper()
		h, err := d.FindHolder(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	s.eventually("no transaction writes", func() bool { return find() == nil })
	oldest := s.begin()
	var pid int
	if err := oldest.QueryRowContext(t.Context(), "SELECT pg_backend_pid()").Scan(&pid); err != nil {
		t.Fatal(err)
	}
	younger := s.begin()
	s.eventually("the transactions of other tests end", func() bool { h := find(); return h != nil && h.PID == pid })
	if h := find(); h == nil || h.PID != pid || h.State != "idle in transaction" || h.Age <= 0 || h.Hidden || h.Prepared != "" {
		t.Errorf("got %+v, want the session %d", h, pid)
	}
	s.commit(oldest)
	s.commit(younger)
	if h, err := s.dealer(orderedSales).FindHolder(t.Context()); h != nil || err != nil {
		t.Errorf("a select without a horizon: %+v, %v", h, err)
	}
}
