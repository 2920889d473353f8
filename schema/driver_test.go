package schema

import (
	"errors"
	"fmt"
	"testing"

	driver "github.com/go-sql-driver/mysql"
	"github.com/lib/pq"
	_ "modernc.org/sqlite" // the driver "sqlite", whose errors the tests of the lock provoke
)

// Package schema recognises the errors of the drivers without importing them.
func TestErrorsOfDrivers(t *testing.T) {
	t.Parallel()
	wrapped := func(err error) error { return fmt.Errorf("apply migration: %w", err) }
	cases := []struct {
		name string
		is   func(error) bool
		err  error
		want bool
	}{
		{"MySQL has no such table", mysql.noTable, &driver.MySQLError{Number: 1146, Message: "no table"}, true},
		{"MySQL with a state", mysql.noTable, &driver.MySQLError{Number: 1146, SQLState: [5]byte{'4', '2', 'S', '0', '2'}}, true},
		{"MySQL deadlock", mysql.transient, &driver.MySQLError{Number: 1213}, true},
		{"MySQL syntax", mysql.transient, &driver.MySQLError{Number: 1064, Message: "Error 1213: near"}, false},
		{"MySQL driver", mysql.transient, driver.ErrInvalidConn, false},
		{"PostgreSQL has no such table", postgres.noTable, &pq.Error{Code: "42P01"}, true},
		{"PostgreSQL deadlock", postgres.transient, &pq.Error{Code: "40P01"}, true},
		{"PostgreSQL syntax", postgres.transient, &pq.Error{Code: "42601"}, false},
		{"SQLite busy", sqlite.transient, code(5 | 2<<8), true},
		{"SQLite locked", sqlite.transient, code(6), true},
		{"SQLite error", sqlite.transient, code(1), false},
		{"another error", mysql.transient, errors.New("Error 1213: deadlock"), false},
	}
	for _, c := range cases {
		if got := c.is(wrapped(c.err)); got != c.want {
			t.Errorf("%s: %t, want %t", c.name, got, c.want)
		}
	}
}

// code is an error of modernc.org/sqlite, whose own type cannot be made here.
type code int

func (c code) Error() string { return fmt.Sprint("code ", int(c)) }
func (c code) Code() int     { return int(c) }
