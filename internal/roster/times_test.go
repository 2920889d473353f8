package roster

import (
	"slices"
	"testing"

	"github.com/dutyrota/rota/schema"
)

// S17: each column of times has a meaning, and each table with times has a key by which its rows are corrected.
func TestEachTimeHasAMeaning(t *testing.T) {
	t.Parallel()
	var want, got []string
	for _, c := range schema.Columns() {
		if c.Kind == schema.Time {
			want = append(want, c.Table+"."+c.Name)
		}
	}
	for _, table := range timeTables {
		for _, c := range table.times {
			got = append(got, table.name+"."+c.column)
			if c.meaning == due && c.limit == nil {
				t.Errorf("%s.%s is a due time without a limit", table.name, c.column)
			}
		}
		if n := len(keyOf(table.name)); n < 1 || n > 3 {
			t.Errorf("the key of %s has %d columns, want 1 to 3", table.name, n)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("columns of times with a meaning:\n%s\nwant those of the tables:\n%s", got, want)
	}
}
