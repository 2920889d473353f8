package center_test

import (
	"database/sql"
	"slices"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/testdb"
)

// Column returns the values in order, or an error and none of them.
func TestColumn(t *testing.T) {
	testdb.Each(t, func(t *testing.T, url string) {
		ctx, db := t.Context(), centertest.Open(t, url, center.Options{}).DB()
		if got, err := center.Column[string](ctx, db, `SELECT 'a' UNION ALL SELECT 'b' ORDER BY 1`); err != nil || !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("got %v, %v, want a and b", got, err)
		}
		if got, err := center.Column[int](ctx, db, `SELECT 1 WHERE 1 = 0`); err != nil || len(got) > 0 {
			t.Errorf("got %v, %v, want nothing", got, err)
		}
		if got, err := center.Column[*string](ctx, db, `SELECT NULL`); err != nil || len(got) != 1 || got[0] != nil {
			t.Errorf("got %v, %v, want a NULL", got, err)
		}
		for _, query := range []string{`SELECT 1 UNION ALL SELECT NULL`, `SELECT 1, 2`, `SELECT missing`} {
			if got, err := center.Column[int](ctx, db, query); err == nil || got != nil {
				t.Errorf("%s: got %v, %v, want an error", query, got, err)
			}
		}
		if got, err := center.Column[sql.NullString](ctx, db, `SELECT NULL`); err != nil || len(got) != 1 || got[0].Valid {
			t.Errorf("got %v, %v, want a NULL", got, err)
		}
	})
}
