package schema

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// unchecked are the tables whose rows no server reads for its work: a bad row must not keep a server from being moved to
// its history.
var unchecked = []string{"schedule_server_history", "schedule_event"}

// S13: each number and each boolean has its bounds. PostgreSQL has a type for booleans.
func TestEachNumberHasACheck(t *testing.T) {
	t.Parallel()
	column := regexp.MustCompile(`^    (\w+) +(?i:BIGINT|DOUBLE|BOOLEAN)\b`)
	for _, g := range grammars {
		checked := map[string]bool{}
		for _, c := range Checks(g.name) {
			if checked[c.Table+"."+c.Column] = true; !strings.Contains(c.Condition, c.Column) {
				t.Errorf("%s: the constraint of %s.%s does not name the column: %s", g.name, c.Table, c.Column, c.Condition)
			}
		}
		text, err := embedded.ReadFile(g.dir + "/00001_roster.sql")
		if err != nil {
			t.Fatal(err)
		}
		table, n := "", 0
		for line := range strings.Lines(string(text)) {
			if m := createTable.FindStringSubmatch(line); m != nil {
				table = m[1]
			}
			m := column.FindStringSubmatch(line)
			if m == nil || slices.Contains(unchecked, table) || g.name == Postgres && strings.Contains(line, "boolean") {
				continue
			}
			if n++; !checked[table+"."+m[1]] {
				t.Errorf("%s: %s.%s has no CHECK constraint", g.name, table, m[1])
			}
		}
		if n < 50 {
			t.Errorf("%s: the test has found only %d numbers", g.name, n)
		}
	}
}
