package schema

import (
	"slices"
	"strings"
	"testing"
)

// unchecked are the tables whose rows no server reads for its work: a bad row must not keep a server from being moved to
// its history.
var unchecked = []string{"schedule_server_history", "schedule_event"}

// S13: each number and each boolean has its bounds. PostgreSQL has a type for booleans.
func TestEachNumberHasACheck(t *testing.T) {
	TeachLater(t, own+2)
	for _, g := range grammars {
		checked := map[string]bool{}
		for _, c := range readChecks(known.files, g.dir) {
			name := c.Table + "." + c.Column
			if checked[name] || !strings.Contains(c.Condition, c.Column) {
				t.Errorf("%s: %s has another constraint, too, or this one does not name it: %s", g.name, name, c.Condition)
			}
			checked[name] = true
		}
		n := 0
		for _, line := range shapeOf(t, g) {
			m := column.FindStringSubmatch(line)
			if m == nil || m[3] == "text" || slices.Contains(unchecked, m[1]) || g.name == Postgres && m[3] == "flag" {
				continue
			}
			if n++; !checked[m[1]+"."+m[2]] {
				t.Errorf("%s: %s.%s has no CHECK constraint", g.name, m[1], m[2])
			}
		}
		if n < 50 {
			t.Errorf("%s: the test has found only %d numbers", g.name, n)
		}
	}
}
