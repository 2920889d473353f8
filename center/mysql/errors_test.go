package mysql

import (
	"fmt"
	"testing"

	driver "github.com/go-sql-driver/mysql"

	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/internal/testdb"
)

func TestErrorClasses(t *testing.T) {
	number := func(n uint16) error { return &driver.MySQLError{Number: n} }
	cases := map[sqldb.Class][]error{
		sqldb.Interrupted: {number(1969), number(3024), number(1317), number(1105), number(9001)},
		sqldb.RolledBack:  {number(1213), number(1205), number(1020), number(9007), number(8028), number(3101)},
		sqldb.Broken:      {number(1047), number(1180), number(8501), driver.ErrInvalidConn},
		sqldb.Held:        {number(3572)},
		sqldb.ReadOnly:    {number(1290), number(1836)},
		sqldb.NoTable:     {number(1146)},
		sqldb.Duplicate:   {number(1062)},
		sqldb.Refused:     {number(1064)},
	}
	for want, errs := range cases {
		for _, err := range errs {
			if got := dialect.Class(fmt.Errorf("wrapped: %w", err)); got != want {
				t.Errorf("class of %v: got %s, want %s", err, got, want)
			}
		}
	}
}

func TestOldServersAreRefused(t *testing.T) {
	for version, want := range map[string]string{
		"8.0.36":                 "",
		"5.7.44-log":             "MySQL 5.7.44-log is too old: 8.0 or newer is needed",
		"10.6.18-MariaDB":        "",
		"11.8.3-MariaDB-0+deb13": "",
		"10.5.9-MariaDB":         "MariaDB 10.5.9-MariaDB is too old: 10.6 or newer is needed",
		"x":                      `MySQL "x": cannot read the version`,
	} {
		got := ""
		_, err := askVendor(t.Context(), testdb.Answering(t, map[string][]any{"VERSION()": {version, ""}}))
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", version, got, want)
		}
	}
}
