package sqldealer

import (
	"strings"
	"testing"

	"github.com/dutyrota/rota/config"
)

// A statement is parsed or refused. The texts between its placeholders stay as they are, so that no part of a string or of
// a comment becomes SQL.
func FuzzStatement(f *testing.F) {
	for _, text := range []string{
		"SELECT id FROM o WHERE {{mine id}} LIMIT {{limit}}", "/* {{a}} */ $$ x $$ $1 '{{keys}}'", `E'\'' -- {{total}}`,
		"{{ total }}{{row.x}}", "# x\n{{index}}", "`a``b`", "/*/**/*/ {{total}}", "UPDATE a SET b = {{row.x}} WHERE id IN ({{keys}})",
		"SELECT id FROM x WHERE id > {{cursor}} ORDER BY id LIMIT {{limit}}", "$a$ {{total}} $a$", "'", "{{", "{{\x00}}", "{{mine a}}", "{{mine_hash f(')')}}", "\xff{{total}}", "$", "\\",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, d := range dialects {
			_, _ = newDealer(config.Task{Name: "x", SQL: config.SQLDealer{Select: text, ExecuteEach: "DELETE FROM x WHERE id = {{row.id}}", Key: []string{"id"}}}, d)
			_, _ = newDealer(config.Task{Name: "x", SQL: config.SQLDealer{Select: "SELECT id FROM x LIMIT {{limit}}", Execute: text, Key: []string{text}}}, d)
			s, err := parse(text, syntaxes[d], total, index, keys, row, mine, mineHash)
			if err != nil {
				continue
			}
			if len(s.parts) != len(s.names)+1 {
				t.Fatalf("%d texts around %d placeholders", len(s.parts), len(s.names))
			}
			rest := text
			for _, part := range s.parts {
				at := strings.Index(rest, part)
				if at < 0 {
					t.Fatalf("%q is not in %q", part, rest)
				}
				rest = rest[at+len(part):]
			}
			if len(s.names) == 0 && s.text(3) != text {
				t.Fatalf("%q became %q", text, s.text(3))
			}
		}
	})
}
