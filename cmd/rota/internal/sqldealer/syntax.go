package sqldealer

import "github.com/dutyrota/rota/schema"

// syntax is what this package has to know of a database: how it writes marks, strings and comments, and how its driver
// returns values. A new database is a new row of syntaxes. The zero value is standard SQL.
type syntax struct {
	numberedMarks    bool // $1 instead of ?
	hashComments     bool // # starts a comment, and -- does so only before a space: 1--1 is 2
	nestedComments   bool // a block comment may contain another one
	backquotes       bool // `name` is a quoted name
	backslashes      bool // a backslash escapes in each string
	backslashesAfter byte // a backslash escapes in strings such as E'...'; 0 if there are none
	dollarQuotes     bool // $tag$...$tag$ is a string

	mostParameters int // of a statement

	textAsBytes bool // the driver returns some texts as bytes
	parsesLate  bool // the driver parses a statement when it executes it, not when it prepares it
	parsesTimes bool // the driver turns the text of a time into a time.Time, and writes it back in another form
}

var syntaxes = map[schema.Dialect]syntax{
	schema.Postgres: {numberedMarks: true, nestedComments: true, backslashesAfter: 'e', dollarQuotes: true, mostParameters: 65_535, textAsBytes: true},
	schema.MySQL:    {hashComments: true, backquotes: true, backslashes: true, mostParameters: 65_535, textAsBytes: true},
	schema.SQLite:   {backquotes: true, mostParameters: 32_766, parsesLate: true, parsesTimes: true},
}
