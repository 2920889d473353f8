package roster_test

import (
	"errors"
	"testing"

	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/internal/testdb"
)

// H8: if another server has raised the epoch_floor since it was read, this server does not raise it again. Servers of
// two task types do not wait for each other's lock row.
func TestRaiseIsCompareAndSet(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		r := openTask(t, url, "race", 2).Roster()
		for i, want := range []error{nil, sqldb.ErrRaced} {
			if err := r.RaiseFloorFrom(t.Context(), "race", 0); !errors.Is(err, want) {
				t.Errorf("raise number %d from 0: got %v, want %v", i+1, err, want)
			}
		}
	})
}
