package mysql

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	driver "github.com/go-sql-driver/mysql"

	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/internal/testdb"
)

// classCase is how an error of a row of classes comes about, on the kinds that have it. A case of row 0 is about all
// other errors.
type classCase struct {
	row   uint16
	want  sqldb.Class
	kinds string
	meet  func(*scene) error
}

const both = testdb.MySQL + " " + testdb.MariaDB

// numberOf is a case whose error no server of the tests produces in a reliable way.
func numberOf(row uint16, want sqldb.Class) classCase {
	return classCase{row, want, both, func(*scene) error { return &driver.MySQLError{Number: row} }}
}

// saying is a case whose error a statement produces.
func saying(row uint16, want sqldb.Class, statement string) classCase {
	return on(both, row, want, statement)
}

// on is saying on one kind.
func on(kind string, row uint16, want sqldb.Class, statement string) classCase {
	return classCase{row, want, kind, func(s *scene) error { return s.try(statement) }}
}

var classCases = []classCase{
	{1020, sqldb.RolledBack, testdb.MariaDB, func(s *scene) error {
		s.do("SET innodb_snapshot_isolation = ON, tx_isolation = 'REPEATABLE-READ'", "BEGIN", "SELECT * FROM items")
		s.beside("UPDATE items SET n = n + 1")
		return s.try("UPDATE items SET n = n + 1")
	}},
	{1205, sqldb.RolledBack, both, func(s *scene) error {
		s.beside("BEGIN", "SELECT * FROM items FOR UPDATE")
		return s.try("SELECT /* waits for a second, the least */ * FROM items FOR UPDATE")
	}},
	{1213, sqldb.RolledBack, both, func(s *scene) error {
		s.do("BEGIN", "UPDATE items SET n = 1 WHERE id = 1")
		s.beside("BEGIN", "UPDATE items SET n = 1 WHERE id = 2")
		errs := make(chan error)
		for conn, statement := range map[*sql.Conn]string{
			s.conn: "UPDATE items SET n = 2 WHERE id = 2", s.other: "UPDATE items SET n = 2 WHERE id = 1",
		} {
			go func() {
				_, err := conn.ExecContext(s.t.Context(), statement)
				errs <- err
			}()
		}
		return cmp.Or(<-errs, <-errs)
	}},
	numberOf(3101, sqldb.RolledBack),
	numberOf(8002, sqldb.RolledBack),
	numberOf(8022, sqldb.RolledBack),
	numberOf(8028, sqldb.RolledBack),
	numberOf(9007, sqldb.RolledBack),
	saying(noSuchHandler, sqldb.RolledBack, "EXECUTE no_such_statement"),
	numberOf(needReprepare, sqldb.RolledBack),

	{3572, sqldb.Held, testdb.MySQL, func(s *scene) error {
		s.beside("BEGIN", "SELECT * FROM items FOR UPDATE")
		return s.try("SELECT * FROM items FOR UPDATE NOWAIT")
	}},

	numberOf(1105, sqldb.Interrupted),
	{1317, sqldb.Interrupted, both, func(s *scene) error {
		return s.try(fmt.Sprintf("KILL QUERY %d", s.id()))
	}},
	on(testdb.MariaDB, 1969, sqldb.Interrupted, "SET STATEMENT max_statement_time = 0.01 FOR SELECT SLEEP(60)"),
	on(testdb.MySQL, 3024, sqldb.Interrupted, "SELECT /*+ MAX_EXECUTION_TIME(1) */ SLEEP(60) FROM items, items AS more"),
	numberOf(9001, sqldb.Interrupted),
	numberOf(9002, sqldb.Interrupted),
	numberOf(9003, sqldb.Interrupted),
	numberOf(9004, sqldb.Interrupted),
	numberOf(9005, sqldb.Interrupted),

	numberOf(1040, sqldb.Broken),
	numberOf(1047, sqldb.Broken),
	numberOf(1053, sqldb.Broken),
	numberOf(1152, sqldb.Broken),
	numberOf(1180, sqldb.Broken),
	numberOf(1203, sqldb.Broken),
	{1226, sqldb.Broken, both, func(s *scene) error {
		limited := open(s.t, s.as("WITH MAX_USER_CONNECTIONS 1"), sqldb.RoleHeartbeat)
		first, err := limited.Conn(s.t.Context())
		if err != nil {
			s.t.Fatal(err)
		}
		defer first.Close()
		return limited.PingContext(s.t.Context())
	}},
	numberOf(1927, sqldb.Broken),
	numberOf(2006, sqldb.Broken),
	numberOf(2013, sqldb.Broken),
	numberOf(3169, sqldb.Broken),
	numberOf(4031, sqldb.Broken),
	numberOf(8501, sqldb.Broken),

	{1290, sqldb.ReadOnly, both, func(s *scene) error {
		server := testdb.Own(s.t, s.kind)
		own := newScene(s.t, s.kind, server.URL())
		restricted := open(s.t, own.as(""), sqldb.RoleDealers)
		own.do("SET GLOBAL read_only = 1")
		_, err := restricted.ExecContext(s.t.Context(), "UPDATE items SET n = 1")
		return err
	}},
	{1290, sqldb.Refused, testdb.MySQL, func(*scene) error {
		return &driver.MySQLError{Number: 1290, Message: "The MySQL server is running with the --secure-file-priv option " +
			"so it cannot execute this statement"}
	}},
	{1792, sqldb.ReadOnly, both, func(s *scene) error {
		s.do("START TRANSACTION READ ONLY")
		return s.try("UPDATE items SET n = 1")
	}},
	numberOf(1836, sqldb.ReadOnly),

	saying(1146, sqldb.NoTable, "SELECT * FROM no_such_table"),
	saying(1062, sqldb.Duplicate, "INSERT INTO items (id) VALUES (1)"),

	saying(1048, sqldb.BadData, "INSERT INTO items (id) VALUES (NULL)"),
	numberOf(1169, sqldb.BadData),
	numberOf(1216, sqldb.BadData),
	numberOf(1217, sqldb.BadData),
	saying(1264, sqldb.BadData, "UPDATE items SET n = 99999999999"),
	saying(1265, sqldb.BadData, "UPDATE items SET kind = 'c'"),
	saying(1292, sqldb.BadData, "UPDATE items SET day = 'x'"),
	saying(1364, sqldb.BadData, "INSERT INTO items (n) VALUES (1)"),
	saying(1365, sqldb.BadData, "UPDATE items SET n = 1 / 0"),
	saying(1366, sqldb.BadData, "UPDATE items SET n = 'x'"),
	saying(1367, sqldb.BadData, "SELECT 1e500"),
	saying(1406, sqldb.BadData, "UPDATE items SET name = 'long'"),
	saying(1411, sqldb.BadData, "UPDATE items SET day = STR_TO_DATE('x', '%Y')"),
	saying(1451, sqldb.BadData, "DELETE FROM items WHERE id = 1"),
	saying(1452, sqldb.BadData, "INSERT INTO parts VALUES (9)"),
	saying(1525, sqldb.BadData, "SELECT DATE'x'"),
	numberOf(1557, sqldb.BadData),
	saying(1690, sqldb.BadData, "SELECT 9223372036854775807 + 1"),
	on(testdb.MySQL, 3140, sqldb.BadData, "UPDATE items SET doc = 'x'"),
	on(testdb.MySQL, 3141, sqldb.BadData, "SELECT JSON_KEYS('x')"),
	on(testdb.MySQL, 3156, sqldb.BadData, `UPDATE items SET n = CAST('"x"' AS JSON)`),
	on(testdb.MySQL, 3819, sqldb.BadData, "UPDATE items SET n = -1"),
	on(testdb.MariaDB, 4025, sqldb.BadData, "UPDATE items SET n = -1"),

	saying(0, sqldb.Refused, "SELEC"),
	{0, sqldb.Refused, both, func(s *scene) error {
		return open(s.t, changed(s.t, s.url, func(u *url.URL) { u.Path = "/no_such_database" }), sqldb.RoleStore).PingContext(s.t.Context())
	}},
	{0, sqldb.Refused, both, func(s *scene) error {
		wrong := changed(s.t, s.as(""), func(u *url.URL) { u.User = url.UserPassword(u.User.Username(), "wrong") })
		return open(s.t, wrong, sqldb.RoleStore).PingContext(s.t.Context())
	}},
	{0, sqldb.Broken, both, func(*scene) error { return driver.ErrInvalidConn }},
	{0, sqldb.Broken, both, func(s *scene) error {
		s.beside(fmt.Sprintf("KILL %d", s.id()))
		return s.try("SELECT 1")
	}},
	{0, sqldb.Other, both, func(*scene) error { return context.Canceled }},
}

// Each row of the table of classes has a case, which a server produces if one can.
func TestErrorClasses(t *testing.T) {
	met := map[uint16]bool{0: true}
	for _, kind := range []string{testdb.MySQL, testdb.MariaDB} {
		t.Run(kind, func(t *testing.T) {
			raw := testdb.URL(t, kind)
			for _, c := range classCases {
				if strings.Contains(c.kinds, kind) {
					t.Run(fmt.Sprint(c.row), func(t *testing.T) { checkClass(t, c, newScene(t, kind, raw)) })
				}
			}
		})
	}
	for _, c := range classCases {
		met[c.row] = met[c.row] || c.want == classes[c.row]
	}
	for row := range classes {
		if !met[row] {
			t.Errorf("the row %d has no case", row)
		}
		delete(met, row)
	}
	if len(met) > 1 {
		t.Errorf("cases of no row: %v", met)
	}
}

func checkClass(t *testing.T, c classCase, s *scene) {
	t.Helper()
	err := c.meet(s)
	number := uint16(0)
	if e, ok := errors.AsType[*driver.MySQLError](err); ok {
		number = e.Number
	}
	if got := dialect.Class(fmt.Errorf("wrapped: %w", err)); got != c.want || c.row != 0 && number != c.row {
		t.Errorf("class of %d, %v: got %s, want %s of %d", number, err, got, c.want, c.row)
	}
}

// scene is a database in which errors come about, with two connections to it.
type scene struct {
	t           *testing.T
	kind, url   string
	conn, other *sql.Conn
}

func newScene(t *testing.T, kind, raw string) *scene {
	t.Helper()
	s := &scene{t: t, kind: kind, url: raw}
	for _, conn := range []**sql.Conn{&s.conn, &s.other} {
		var err error
		if *conn, err = open(t, raw, sqldb.RoleStore).Conn(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = (*conn).Close() }) // it is broken after some cases
	}
	s.do("DROP TABLE IF EXISTS parts, items",
		`CREATE TABLE items (id INT PRIMARY KEY, n INT NOT NULL DEFAULT 0 CHECK (n >= 0), name VARCHAR(3), day DATE,
			kind ENUM('a', 'b'), doc JSON) ENGINE = InnoDB`,
		"CREATE TABLE parts (item INT, FOREIGN KEY (item) REFERENCES items (id)) ENGINE = InnoDB",
		"INSERT INTO items (id) VALUES (1), (2)", "INSERT INTO parts VALUES (1)",
		"SET sql_mode = 'STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO'")
	return s
}

// id returns the number of the connection.
func (s *scene) id() (id int) {
	s.t.Helper()
	if err := s.conn.QueryRowContext(s.t.Context(), "SELECT CONNECTION_ID()").Scan(&id); err != nil {
		s.t.Fatal(err)
	}
	return id
}

func (s *scene) try(statement string) error {
	_, err := s.conn.ExecContext(s.t.Context(), statement)
	return err
}

func (s *scene) do(statements ...string) {
	s.t.Helper()
	s.run(s.conn, statements)
}

// beside runs statements on the other connection.
func (s *scene) beside(statements ...string) {
	s.t.Helper()
	s.run(s.other, statements)
}

func (s *scene) run(conn *sql.Conn, statements []string) {
	s.t.Helper()
	for _, statement := range statements {
		if _, err := conn.ExecContext(s.t.Context(), statement); err != nil {
			s.t.Fatalf("%s: %v", statement, err)
		}
	}
}

// as returns the URL for a new user without the rights that overrule read_only.
func (s *scene) as(limits string) string {
	s.t.Helper()
	name := "u" + strings.ToLower(rand.Text())
	s.do("CREATE USER "+name+"@'%' IDENTIFIED BY 'secret' "+limits, "GRANT ALL ON "+s.database()+".* TO "+name+"@'%'")
	s.t.Cleanup(func() {
		_, err := open(s.t, s.url, sqldb.RoleDealers).ExecContext(context.WithoutCancel(s.t.Context()), "DROP USER "+name+"@'%'")
		if err != nil {
			s.t.Error(err)
		}
	})
	return changed(s.t, s.url, func(u *url.URL) { u.User = url.UserPassword(name, "secret") })
}

func (s *scene) database() string {
	s.t.Helper()
	u, err := url.Parse(s.url)
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.TrimPrefix(u.Path, "/")
}

// changed returns a URL with another part.
func changed(t *testing.T, raw string, change func(*url.URL)) string {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	change(u)
	return u.String()
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
