package sqldealer

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/config"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/schema"
)

// typeCase is a column type. Its values rise, and start is below them.
type typeCase struct {
	kind, start string
	values      []string

	noKey, noCursor string // the start of the refusal; noKey refuses a cursor, too
}

var typeCases = map[schema.Dialect][]typeCase{
	schema.Postgres: {
		{kind: "BIGINT", start: "-1", values: []string{"9", "10", "9007199254740992", "9007199254740993", "9223372036854775807"}},
		{kind: "SMALLINT", start: "-1", values: []string{"9", "10"}},
		{kind: "NUMERIC(30,3)", start: "0", values: []string{"1.500", "12345678901234567890.123", "12345678901234567890.124"}},
		{kind: "NUMERIC", start: "0", values: []string{"1.5", "1.51"}},
		{kind: "DOUBLE PRECISION", start: "0", values: []string{"0.1", "0.30000000000000004", "1e300"}},
		{kind: "REAL", start: "0", values: []string{"0.1", "0.3", "16777217"}},
		{kind: "TEXT COLLATE \"C\"", start: "!", values: []string{"'a'", "'a '", `E'a\\'`, "'é'"}},
		{kind: "TEXT", start: "!", values: []string{`E'\\x61'`, `E'\\x62'`}},
		{kind: "VARCHAR(9)", start: "!", values: []string{"'it''s'", "'x'"}},
		{kind: "CHAR(5)", start: "!", values: []string{"'a'", "'ccccc'"}},
		{kind: "UUID", start: "00000000-0000-0000-0000-000000000000", values: []string{"'00000000-0000-0000-0000-000000000001'", "'a0000000-0000-0000-0000-00000000000f'"}},
		{kind: "BYTEA", start: `\x`, values: []string{`'\x00ff'`, `'\x27'`, `'\x61'`, `'\x6162'`, `'\xff00'`}},
		{kind: "BOOLEAN", start: "false", values: []string{"true"}},
		{kind: "DATE", start: "-infinity", values: []string{"'1969-12-31'", "'2026-01-01'", "'infinity'"}},
		{kind: "TIME", start: "00:00:00", values: []string{"'00:00:01'", "'12:00:00.123456'", "'23:59:59'", "'24:00:00'"}},
		{kind: "TIMETZ", start: "00:00:00+14", values: []string{"'01:00:00+02:30'", "'01:00:00+00'", "'12:00:00.123456-08'"}},
		{kind: "TIMESTAMP", start: "1970-01-01", values: []string{"'2026-03-29 02:30:00.123456'", "'2026-10-25 02:30:00'", "'infinity'"}},
		{kind: "TIMESTAMPTZ", start: "1970-01-01Z", values: []string{"'2026-03-29 01:59:59.123456+01'", "'2026-10-25 02:30:00+02'", "'2026-10-25 02:30:00+01'", "'infinity'"}},
		{kind: "TIMETZ", start: "00:00:00+14", values: []string{"'24:00:00+02'"}},
		{kind: "DOUBLE PRECISION", start: "-Infinity", values: []string{"-1", "'-0'", "'Infinity'", "'NaN'"}},
		{kind: "NUMERIC", start: "-1", values: []string{"0", "'NaN'"}},
		{kind: "INTERVAL", start: "0", values: []string{"'1 hour'", "'1 day'", "'2 months'"}},
		{kind: "BIT(8)", start: "00000000", values: []string{"B'00000001'", "B'10000000'", "B'11111111'"}},
		{kind: "BIT VARYING(8)", start: "0", values: []string{"B'01'", "B'1'", "B'11'"}},
		{kind: "INET", start: "0.0.0.0", values: []string{"'10.0.0.1'", "'10.0.0.2'"}},
		{kind: "JSONB", start: "null", values: []string{`'"x"'`, "'3'", `'{"a": 1}'`}},
		{kind: "INTEGER[]", start: "{}", values: []string{"'{1,2}'", "'{1,10}'"}},
		{kind: "BYTEA[]", start: "{}", values: []string{`'{"\\x00"}'`, `'{"\\x61"}'`}},
		{kind: "MONEY", start: "0", values: []string{"1.50", "2.50"}},
		{kind: "xid8", start: "0", values: []string{"'9'", "'10'", "'18446744073709551615'"}},
		{kind: "mood", start: "sad", values: []string{"'ok'", "'happy'"}},
	},
	schema.MySQL: {
		{kind: "BIGINT", start: "-1", values: []string{"9", "10", "9007199254740992", "9007199254740993", "9223372036854775807"}},
		{kind: "BIGINT UNSIGNED", start: "0", values: []string{"9", "10", "9223372036854775808", "18446744073709551614", "18446744073709551615"}},
		{kind: "TINYINT(1)", start: "-128", values: []string{"-1", "0", "1", "2"}},
		{kind: "BIT(1)", noKey: `run select: column "k" of type BIT cannot be a key: select CAST(k AS UNSIGNED) AS k`},
		{kind: "BIT(16)", noKey: `run select: column "k" of type BIT cannot be a key: select CAST(k AS UNSIGNED) AS k`},
		{kind: "DECIMAL(30,3)", start: "0", values: []string{"1.500", "12345678901234567890.123", "12345678901234567890.124"}},
		{kind: "DOUBLE", start: "0", values: []string{"0.1", "0.30000000000000004", "1e300"}},
		{kind: "FLOAT", noKey: `run select: column "k" of type FLOAT cannot be a key: its text is rounded; select CAST(k AS DOUBLE) AS k`},
		{kind: "VARCHAR(20)", start: "!", values: []string{"'a'", "'B'", "'it''s'", "'é'"}[:3]},
		{kind: "VARCHAR(20) CHARACTER SET latin1 COLLATE latin1_bin", start: "!", values: []string{"'B'", "'a'", "'é'"}},
		{kind: "CHAR(3)", start: "!", values: []string{"'a'", "'abc'"}},
		{kind: "TEXT", start: "!", values: []string{"'a'", "'abc'"}},
		{kind: "BINARY(2)", start: `\x`, values: []string{"x'00ff'", "x'2700'", "x'6162'", "x'ff00'"}},
		{kind: "BINARY(16)", start: `\x00`, values: []string{"x'00112233445566778899aabbccddeeff'", "x'30112233445566778899aabbccddeeff'", "x'ff112233445566778899aabbccddeeff'"}},
		{kind: "VARBINARY(16)", start: `\x00`, values: []string{"x'00ff'", "x'61'", "x'6162'", "x'ff00'"}},
		{kind: "BLOB", start: `\x00`, values: []string{"x'00ff'", "x'61'", "x'ff00'"}},
		{kind: "DATE", start: "1900-01-01", values: []string{"'1969-12-31'", "'2026-01-01'"}},
		{kind: "TIME(6)", start: "00:00:00", values: []string{"'00:00:01'", "'12:00:00.123456'", "'23:59:59'", "'100:00:00'"}},
		{kind: "DATETIME(6)", start: "1970-01-01", values: []string{"'2026-01-01 00:00:00'", "'2026-01-01 00:00:00.000001'", "'2026-03-29 02:30:00.123456'"}},
		{kind: "DATETIME", start: "1970-01-01", values: []string{"'2026-03-29 02:30:00'", "'2026-10-25 02:30:00'"}},
		{kind: "TIMESTAMP(6) NULL", start: "1971-01-01", values: []string{"'2026-03-29 03:30:00.1'", "'2026-10-25 02:30:00'"}},
		{kind: "YEAR", start: "1970", values: []string{"2026", "2027"}},
		{kind: "ENUM('z', 'a')", values: []string{"'z'", "'a'"}, noCursor: `run select: column "k" of type ENUM cannot be {{cursor}} or {{after}}: it is ordered by the number of the value`},
		{kind: "SET('z', 'a')", values: []string{"'z'", "'z,a'"}, noCursor: `run select: column "k" of type SET cannot be {{cursor}} or {{after}}: it is ordered by the number of the value`},
	},
	schema.MariaDB: { // beside those of MySQL
		{kind: "UUID", start: "00000000-0000-0000-0000-000000000000", values: []string{"'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", "'b0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'"}},
		{kind: "INET6", start: "::", values: []string{"'::1'", "'::2'"}},
	},
	schema.SQLite: {
		{kind: "INTEGER", start: "-1", values: []string{"9", "10", "9007199254740993", "9223372036854775807"}},
		{kind: "TEXT", start: "!", values: []string{"'10'", "'9'", `'\x61'`, "'it''s'"}},
		{kind: "VARCHAR(20)", start: "0", values: []string{"'10'", "'9'", "'a'"}},
		{kind: "NUMERIC", start: "0", values: []string{"9", "10", "'x'"}},
		{kind: "BLOB", start: `\x`, values: []string{"x'00ff'", "x'61'", "x'6162'", "x'ff00'"}},
		{kind: "BOOLEAN", start: "-1", values: []string{"0", "1", "2"}},
		{kind: "", start: "0", values: []string{"9", "10", "'a'", "x'00'"}},
		{kind: "BLOB", start: "0", values: []string{"1", "'text'"}},
		{kind: "", values: []string{"'1'", "'b'"}, noCursor: `run select: column "k" holds the text "1" and has no type: declare it TEXT`},
		{kind: "REAL", values: []string{"0.1", "0.30000000000000004", "1e300"}, noCursor: `run select: column "k" holds 0.1, which cannot be {{cursor}} or {{after}}`},
		{kind: "NUMERIC", values: []string{"1.5", "12345678901234567890.123"}, noCursor: `run select: column "k" holds 1.5, which cannot be {{cursor}} or {{after}}`},
	},
}

// typesOf returns the cases of a dialect, after those of its family.
func typesOf(d schema.Dialect) []typeCase {
	if f := d.Family(); f != d {
		return slices.Concat(typeCases[f], typeCases[d])
	}
	return typeCases[d]
}

// Each column type works as key, position and cursor, exactly, or is refused with its name.
func TestColumnTypes(t *testing.T) {
	testdb.EachReused(t, func(t *testing.T, url string) {
		s := openShop(t, url)
		if s.Dialect() == schema.Postgres {
			s.exec("CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')")
		}
		for i, c := range typesOf(s.Dialect()) {
			t.Run(strings.TrimSpace(c.kind+" "+strings.Join(c.values, " ")), func(t *testing.T) {
				typeTable{shop{t, s.Center}, c, fmt.Sprintf("t%d", i)}.test()
			})
		}
	})
}

// typeTable is a table with the values of a case, in another order.
type typeTable struct {
	shop
	typeCase
	table string
}

func (t typeTable) test() {
	t.exec("CREATE TABLE "+t.table+" (n INTEGER, k "+t.kind+", done INTEGER NOT NULL DEFAULT 0)", "INSERT INTO "+t.table+" (n, k) VALUES (-1, NULL)")
	for i, v := range slices.Backward(t.values) {
		t.exec(fmt.Sprintf("INSERT INTO %s (n, k) VALUES (%d, %s)", t.table, i, v))
	}
	if len(t.values) == 0 {
		t.exec("INSERT INTO " + t.table + " (n, k) VALUES (0, 1)")
	}
	const from = "SELECT n, k FROM "
	update := "UPDATE " + t.table + " SET done = done + 1 WHERE "
	rest := from + t.table + " WHERE done = 0 AND n >= 0 AND {{index}} = 1 ORDER BY n LIMIT {{limit}}"
	behind := from + t.table + " WHERE k > {{cursor}} AND {{index}} = 1 ORDER BY k LIMIT {{limit}}"
	start := t.start
	if start == "" {
		start = "-"
		behind = strings.Replace(behind, "k > {{cursor}}", "({{cursor}} <> '' AND n >= 0)", 1)
	}
	noCursor := t.noKey + t.noCursor
	t.drain("keys", config.SQLDealer{Select: rest, Key: []string{"k"}, Execute: update + "k IN ({{keys}})"}, t.noKey)
	t.drain("row values", config.SQLDealer{Select: strings.Replace(rest, "n, k", "n, k, 1 AS one", 1), Key: []string{"one", "k"}, Execute: update + "(1, k) IN ({{keys}})"}, t.noKey)
	t.drain("each", config.SQLDealer{Select: rest, Key: []string{"k"}, ExecuteEach: update + "k = {{row.k}}"}, t.noKey)
	t.drain("cursor", config.SQLDealer{Select: behind, Key: []string{"k"}, ExecuteEach: update + "n = {{row.n}}", CursorStart: []string{start}, CommitsInOrder: true}, noCursor)
	t.drain("after", config.SQLDealer{Select: strings.Replace(behind, "cursor", "after", 1), Key: []string{"k"}, ExecuteEach: update + "n = {{row.n}}", AfterStart: []string{start}}, noCursor)
}

// drain executes all rows, and checks that each was executed once.
func (t typeTable) drain(what string, c config.SQLDealer, refusal string) {
	t.Helper()
	switch got := errorText(t.shop.drain(t.dealer(c), len(t.values))); {
	case refusal != "" && !strings.HasPrefix(got, refusal):
		t.Errorf("%s: got %s\nwant %s", what, got, refusal)
	case refusal == "" && got != "":
		t.Errorf("%s: %s", what, got)
	case refusal == "":
		t.want("SELECT COUNT(*) FROM "+t.table+" WHERE done <> 1 AND n >= 0 -- "+what, "0")
	}
	t.exec("UPDATE " + t.table + " SET done = 0")
}

// The driver of MySQL returns the zero time for the date 0000-00-00. As a key it would find no row, as a value of a row
// another one would be written.
func TestZeroDatesAreRefused(t *testing.T) {
	s := openShop(t, testdb.Reused(t, testdb.MySQL))
	conn, err := s.DB().Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, statement := range []string{
		"SET sql_mode = ''", "CREATE TABLE z (id INTEGER, d DATE, at DATETIME(6), done INTEGER NOT NULL DEFAULT 0)",
		"INSERT INTO z (id, d, at) VALUES (1, '0000-00-00', '0000-00-00')", "SET sql_mode = DEFAULT",
	} {
		if _, err := conn.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	const from = "SELECT %s FROM z WHERE done = 0 AND {{index}} = 1 ORDER BY id LIMIT {{limit}}"
	row := config.SQLDealer{Select: fmt.Sprintf(from, "id, d, at"), Key: []string{"id"}, ExecuteEach: "UPDATE z SET done = 1 WHERE d = {{row.d}}"}
	const advice = "holds 0000-00-00, which is no date: correct the row, or select NULLIF"
	for want, c := range map[string]config.SQLDealer{
		`run select: column "d" of type DATE ` + advice + "(d, 0) AS d": row,
		`run select: column "at" of type DATETIME ` + advice + "(at, 0) AS at": {
			Select: fmt.Sprintf(from, "at"), Key: []string{"at"}, Execute: "UPDATE z SET done = 1 WHERE at IN ({{keys}})",
		},
	} {
		if got := errorText(s.drain(s.dealer(c), 1)); got != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
	}
	if _, err := backlogOf(s, "SELECT count(*), min(at) FROM z WHERE {{index}} = 1"); err == nil || !strings.Contains(err.Error(), "the second column, min(at), is 0000-00-00") {
		t.Errorf("backlog: got %v", err)
	}
	row.Select, row.ExecuteEach = fmt.Sprintf(from, "id, NULLIF(d, 0) AS d, at"), "UPDATE z SET done = 1 WHERE id = {{row.id}} AND {{row.d}} IS NULL"
	if err := s.drain(s.dealer(row), 1); err != nil {
		t.Errorf("with what the error advises: %v", err)
	}
}

// A held key leaves out its own rows and no others, whatever the type of the column is: the rows of another key would
// wait with it.
func TestHeldKeysOfEachType(t *testing.T) {
	testdb.EachReused(t, func(t *testing.T, url string) {
		s := openShop(t, url)
		if s.Dialect() == schema.Postgres {
			s.exec("CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')")
		}
		for i, c := range typesOf(s.Dialect()) {
			if strings.Contains(c.noCursor, "has no type") { // SQLite takes the held text for a number
				continue
			}
			t.Run(strings.TrimSpace(c.kind+" "+strings.Join(c.values, " ")), func(t *testing.T) {
				typeTable{shop{t, s.Center}, c, fmt.Sprintf("t%d", i)}.testHeld()
			})
		}
	})
}

func (t typeTable) testHeld() {
	t.exec("CREATE TABLE " + t.table + " (n INTEGER, k " + t.kind + ")")
	for i, v := range t.values {
		t.exec(fmt.Sprintf("INSERT INTO %s (n, k) VALUES (%d, %s)", t.table, i, v))
	}
	dealer := t.dealer(config.SQLDealer{
		Select:  "SELECT n, k FROM " + t.table + " WHERE {{index}} = 1 AND NOT {{held}} ORDER BY n LIMIT {{limit}}",
		Execute: "UPDATE " + t.table + " SET n = n WHERE n IN ({{keys}})", Key: []string{"n"}, OrderKey: "k",
	}).Use(t.DB())
	of := selection()
	of.Limit = 100
	all, err := dealer.Select(t.Context(), of)
	if err != nil {
		t.Fatal(err)
	}
	key := dealer.Key
	for i, r := range all {
		of.Held = []string{dealer.OrderKey(r)}
		rows, err := dealer.Select(t.Context(), of)
		if err != nil {
			t.Errorf("held %v: %v", of.Held, err)
			continue
		}
		var got, want []string
		for _, r := range rows {
			got = append(got, key(r))
		}
		for _, r := range slices.Delete(slices.Clone(all), i, i+1) {
			want = append(want, key(r))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("while %v is held (-want +got):\n%s", of.Held, diff)
		}
	}
}
