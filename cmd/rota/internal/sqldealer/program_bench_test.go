package sqldealer

import (
	"fmt"
	"testing"

	"github.com/sirupsen/logrus"

	"github.com/dutyrota/rota/cmd/rota/internal/program"
	"github.com/dutyrota/rota/config"
	"github.com/dutyrota/rota/internal/testdb"
)

// done is a program in Python that has done each row at once.
const done = `
import json, sys
for line in sys.stdin:
    b = json.loads(line)
    items = [{"key": i["key"], "result": "done"} for i in b["items"]]
    print(json.dumps({"batch": b["batch"], "items": items}), flush=True)
`

// BenchmarkProgram measures a select and the execution of its 100 rows, by a statement alone and behind a program. Both
// change all rows in a fenced transaction. docs/choosing.md has the ratio.
func BenchmarkProgram(b *testing.B) {
	testdb.Language(b, "python3")
	c := config.SQLDealer{
		Select:  "SELECT id, state, name, times FROM parcels WHERE {{index}} = 1 ORDER BY id LIMIT {{limit}}",
		Execute: "UPDATE parcels SET times = times + 1 WHERE id IN ({{keys}})", Key: []string{"id"},
	}
	command, err := program.NewCommand([]string{"python3", "-c", done}, nil, logrus.New())
	if err != nil {
		b.Fatal(err)
	}
	defer command.Close()
	for _, kind := range testdb.Kinds(b) {
		s := openShop(b, testdb.URL(b, kind))
		s.exec("CREATE TABLE parcels (id INTEGER PRIMARY KEY, state VARCHAR(9), name VARCHAR(50), times INTEGER NOT NULL DEFAULT 0)")
		for id := range 100 {
			s.exec(insertParcel(id))
		}
		for _, d := range []struct {
			name   string
			dealer *Dealer
		}{{"sql", s.dealer(c)}, {"command", s.programDealer(c, command)}} {
			b.Run(kind+"/"+d.name, func(b *testing.B) {
				b.ReportAllocs()
				selection, ctx := selection(), s.batch(7)
				selection.Limit = 100
				for b.Loop() {
					rows, err := d.dealer.Select(ctx, selection)
					if err != nil || len(rows) != 100 {
						b.Fatal(len(rows), err)
					}
					if err := d.dealer.Execute(ctx, rows); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func insertParcel(id int) string {
	return fmt.Sprintf("INSERT INTO parcels (id, state, name) VALUES (%d, 'NEW', 'parcel %[1]d')", id)
}
