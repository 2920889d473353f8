package schema_test

import (
	"database/sql"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/processor"
	"github.com/dutyrota/rota/schema"
)

// keyRow is a row with a key of each type. All keys of a row without a number are NULL.
type keyRow struct {
	number *int64
	text   string
	id     uuid.UUID
	bytes  []byte
}

var runes = []rune("ab 0'\\%/é" + "e\u0301ßж中𝄞\u200b\x01")

func keyRows() (rows []keyRow) {
	numbers := []int64{0, 1, -1, -7, -8, 7, 8, 1<<53 + 1, -1<<53 - 1, math.MaxInt64, math.MinInt64, math.MinInt64 + 1}
	for range 200 {
		numbers = append(numbers, rand.Int64()-rand.Int64())
	}
	for i, n := range numbers {
		text := make([]rune, i%20)
		for j := range text {
			text[j] = runes[rand.IntN(len(runes))]
		}
		bytes := make([]byte, i%9)
		for j := range bytes {
			bytes[j] = byte(rand.IntN(256)) //nolint:gosec // it is below 256
		}
		rows = append(rows, keyRow{&n, string(text), uuid.New(), bytes})
	}
	return append(rows, keyRow{})
}

// keyTypes are the types of the columns number, small, text, id and bytes of each family.
var keyTypes = map[schema.Dialect][]any{
	schema.Postgres: {"bigint", "integer", "text", "uuid", "bytea"},
	schema.MySQL:    {"BIGINT", "INTEGER", "TEXT CHARACTER SET utf8mb4", "CHAR(36)", "VARBINARY(99)"},
	schema.SQLite:   {"INTEGER", "INTEGER", "TEXT", "TEXT", "BLOB"},
}

// Each row belongs to exactly one queue of any total (N4), and Go computes the same one as the database.
func TestMineAgreesWithGo(t *testing.T) {
	testdb.Each(t, func(t *testing.T, url string) {
		c := centertest.Open(t, url, center.Options{})
		db, d := c.DB(), c.Dialect()
		execute(t, db, fmt.Sprintf("CREATE TABLE keyed (row_id INTEGER PRIMARY KEY, number %s, small %s, text %s, id %s, bytes %s)",
			keyTypes[d.Family()]...))
		rows := keyRows()
		for i, r := range rows {
			values := []any{i, r.number, nil, r.text, r.id.String(), r.bytes}
			if r.number == nil {
				values = []any{i, nil, nil, nil, nil, nil}
			} else {
				values[2] = int32(*r.number) //nolint:gosec // any number will do
			}
			marks := []any{"?", "?", "?", "?", "?", "?"}
			if d == schema.Postgres {
				marks = []any{"$1", "$2", "$3", "$4", "$5", "$6"}
			}
			execute(t, db, fmt.Sprintf("INSERT INTO keyed VALUES (%s, %s, %s, %s, %s, %s)", marks...), values...)
		}
		for key, of := range map[string]func(r keyRow) int64{
			"number":        func(r keyRow) int64 { return *r.number },
			"small":         func(r keyRow) int64 { return int64(int32(*r.number)) }, //nolint:gosec // as above
			"(keyed.small)": func(r keyRow) int64 { return int64(int32(*r.number)) }, //nolint:gosec // as above
			"text":          func(r keyRow) int64 { return d.Hash(r.text) },
			"id":            func(r keyRow) int64 { return d.Hash(r.id.String()) },
			"bytes": func(r keyRow) int64 {
				if d == schema.Postgres {
					return d.Hash(`\x` + hex.EncodeToString(r.bytes))
				}
				return d.Hash(string(r.bytes))
			},
		} {
			condition := d.Mine(key, 1)
			if slices.Contains([]string{"text", "id", "bytes"}, key) {
				condition = d.MineHash(key, 1)
			}
			for _, total := range []int{1, 2, 7, 16} {
				got := make(map[int]int, len(rows))
				for index := range total {
					for _, row := range ints(t, db, "SELECT row_id FROM keyed WHERE "+condition, total, index) {
						if other, twice := got[row]; twice {
							t.Errorf("row %d belongs to the queues %d and %d", row, other, index)
						}
						got[row] = index
					}
				}
				want := make(map[int]int, len(rows))
				for i, r := range rows {
					want[i] = 0
					if r.number != nil {
						want[i] = processor.QueueOf(of(r), total)
					}
				}
				if !maps.Equal(got, want) {
					t.Errorf("%s, %d queues:\ngot  %v\nwant %v", condition, total, got, want)
				}
			}
		}
	})
}

func ints(t *testing.T, db *sql.DB, query string, args ...any) []int {
	t.Helper()
	list, err := center.Column[int](t.Context(), db, query, args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return list
}

func execute(t *testing.T, db *sql.DB, query string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// Fractions, and numbers beyond the range of an integer, belong to one queue too, or the select fails.
func TestMineOfOtherNumbers(t *testing.T) {
	testdb.Each(t, func(t *testing.T, url string) {
		c := centertest.Open(t, url, center.Options{})
		db, d := c.DB(), c.Dialect()
		kind := "decimal(30, 2)"
		if d == schema.SQLite {
			kind = "REAL"
		}
		execute(t, db, "CREATE TABLE prices (id INTEGER PRIMARY KEY, price "+kind+")")
		execute(t, db, "INSERT INTO prices VALUES (1, 7.5), (2, -0.5), (3, 2.25), (4, -7.99), (5, NULL)")
		if d != schema.Postgres { // which says that the number is out of range
			execute(t, db, "INSERT INTO prices VALUES (6, 1e25), (7, -1e25)")
		}
		var rows []int
		for index := range 4 {
			rows = append(rows, ints(t, db, "SELECT id FROM prices WHERE "+d.Mine("price", 1), 4, index)...)
		}
		slices.Sort(rows)
		if want := ints(t, db, "SELECT id FROM prices ORDER BY id"); !slices.Equal(rows, want) {
			t.Errorf("the queues have the rows %v, want %v", rows, want)
		}
	})
}

// A queue that is split has the rows that its parts have (N3).
func TestMineOfPartsOfAQueue(t *testing.T) {
	t.Parallel()
	for range 10_000 {
		key, total := rand.Int64()-rand.Int64(), 1+rand.IntN(100)
		if whole, part := processor.QueueOf(key, total), processor.QueueOf(key, 3*total); part%total != whole {
			t.Fatalf("%d belongs to queue %d of %d, and to %d of %d", key, whole, total, part, 3*total)
		}
	}
}

// The numbers are those of a recorded version, or a rolling upgrade would divide the rows in two ways.
func TestHashStays(t *testing.T) {
	t.Parallel()
	for d, want := range map[schema.Dialect][2]int64{
		schema.Postgres: {3558706393, 2073250400}, schema.MySQL: {0, 1570091429}, schema.TiDB: {0, 1570091429}, schema.SQLite: {0, 1219502583},
	} {
		if got := [2]int64{d.Hash(""), d.Hash("grün")}; got != want {
			t.Errorf("%s: %d, want %d", d, got, want)
		}
	}
}
