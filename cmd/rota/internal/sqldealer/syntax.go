package sqldealer

import (
	"slices"

	"github.com/dutyrota/rota/schema"
)

// syntax is the difference of a database from standard SQL, and of its driver: marks, strings, comments and values. A
// new database is a new row of syntaxes. It has a field for each difference, so they are many. The zero value is
// standard SQL.
type syntax struct {
	dialect schema.Dialect // whose condition {{mine}} is

	numberedMarks    bool // $1 instead of ?
	hashComments     bool // # starts a comment, and -- does so only before a space: 1--1 is 2
	nestedComments   bool // a block comment may contain another one
	backquotes       bool // `name` is a quoted name
	backslashes      bool // a backslash escapes in each string
	backslashesAfter byte // a backslash escapes in strings such as E'...'; 0 if there are none
	dollarQuotes     bool // $tag$...$tag$ is a string

	mostParameters int      // of a statement
	folding        []string // the types whose texts may be equal although they are not the same
	rowsUnordered  bool     // no index serves (a, b) > (1, 2)
	nullsFirst     bool     // ORDER BY has NULL before all values

	transactionIDs bool // a column of type xid8 may hold the writing transaction

	textAsBytes  bool // the driver returns some texts as bytes
	parsesLate   bool // the driver parses a statement when it executes it, not when it prepares it
	parsesTimes  bool // the driver turns the text of a time into a time.Time, and writes it back in another form
	zeroDates    bool // there is a date 0000-00-00, which the driver returns as the zero time
	dynamicTypes bool // a column holds values of any type, and a number is less than each text

	explain   string // begins the statement that returns the plan of another one
	planLines bool   // a plan is lines such as SCAN orders, and not JSON

	binaries []string // the types that hold bytes
	// by type, the form of a time that the driver does not bind exactly; "" is all other types
	timeLayouts map[string]string

	// Types that are refused, with the solution; %[1]s is the column.
	inexact   map[string]string // bound as a key, the value is another one
	unordered map[string]string // they order otherwise than their texts compare
}

// isBinary reports whether a column has bytes. Drivers return text as bytes, too: numeric, uuid and enum of PostgreSQL,
// and each string of MySQL. If such a text is bound as bytes, the driver sends it in the binary format, and it is
// another value or an error.
func (sy syntax) isBinary(kind string) bool {
	return slices.Contains(sy.binaries, kind)
}

var mysqlSyntax = syntax{
	hashComments: true, backquotes: true, backslashes: true, mostParameters: 65_535, rowsUnordered: true, nullsFirst: true,
	textAsBytes: true, zeroDates: true, explain: "EXPLAIN FORMAT=JSON ",
	folding:     []string{"CHAR", "VARCHAR", "TINYTEXT", "TEXT", "MEDIUMTEXT", "LONGTEXT", "ENUM", "SET"},
	binaries:    []string{"BINARY", "VARBINARY", "TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB", "BIT", "GEOMETRY"},
	timeLayouts: map[string]string{"": "2006-01-02 15:04:05.999999"},
	inexact: map[string]string{
		"BIT":      "select CAST(%[1]s AS UNSIGNED) AS %[1]s",
		"FLOAT":    "its text is rounded; select CAST(%[1]s AS DOUBLE) AS %[1]s",
		"JSON":     "select CAST(%[1]s AS CHAR) AS %[1]s, and compare that",
		"GEOMETRY": "give the rows a key of another type than %[1]s",
	},
	unordered: map[string]string{
		"ENUM": "it is ordered by the number of the value; select and compare %[1]s + 0",
		"SET":  "it is ordered by the number of the value; select and compare %[1]s + 0",
	},
}

// of returns the syntax of a dialect.
func (sy syntax) of(d schema.Dialect) syntax {
	sy.dialect = d
	return sy
}

// explainedBy returns the syntax of a database that differs only in its plans.
func (sy syntax) explainedBy(explain string) syntax {
	sy.explain = explain
	return sy
}

var syntaxes = map[schema.Dialect]syntax{
	schema.Postgres: {
		dialect:       schema.Postgres,
		numberedMarks: true, nestedComments: true, backslashesAfter: 'e', dollarQuotes: true, mostParameters: 65_535,
		transactionIDs: true, textAsBytes: true, explain: "EXPLAIN (FORMAT JSON) ",
		binaries:    []string{"BYTEA"},
		timeLayouts: map[string]string{"TIME": "15:04:05.999999", "TIMETZ": "15:04:05.999999-07:00:00"},
	},
	schema.MySQL:   mysqlSyntax.of(schema.MySQL),
	schema.MariaDB: mysqlSyntax.of(schema.MariaDB),
	schema.TiDB:    mysqlSyntax.of(schema.TiDB).explainedBy("EXPLAIN FORMAT = 'tidb_json' "),
	schema.SQLite: {
		dialect:    schema.SQLite,
		backquotes: true, mostParameters: 32_766, nullsFirst: true, parsesLate: true, parsesTimes: true, dynamicTypes: true,
		explain: "EXPLAIN QUERY PLAN ", planLines: true,
	},
}
