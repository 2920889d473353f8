package mysql

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/internal/testdb"
)

var roles = []sqldb.Role{sqldb.RoleStore, sqldb.RoleHeartbeat, sqldb.RoleDealers, sqldb.RoleSchema}

// With autocommit=0 a heartbeat would stay invisible to the other servers, and with loc its time would be another.
func TestForcedSettings(t *testing.T) {
	server := testdb.Own(t, testdb.MySQL)
	if _, err := open(t, server.URL(), sqldb.RoleStore).ExecContext(t.Context(), "SET GLOBAL autocommit = 0"); err != nil {
		t.Fatal(err)
	}
	for _, query := range []string{
		"", "?autocommit=0", "?loc=America%2FNew_York", "?parseTime=false", "?time_zone=%27%2B05:00%27", "?clientFoundRows=false",
		"?interpolateParams=false&rejectReadOnly=false&checkConnLiveness=false", "?multiStatements=true",
	} {
		for _, role := range roles {
			db := open(t, server.URL()+query, role)
			var autocommit int
			var now, noon time.Time
			err := db.QueryRowContext(t.Context(), "SELECT @@autocommit, NOW(6), CAST(? AS DATETIME)", time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)).Scan(&autocommit, &now, &noon)
			if err != nil {
				t.Fatalf("%s, role %d: %v", query, role, err)
			}
			if autocommit != 1 || time.Since(now).Abs() > time.Hour || noon.Hour() != 12 || noon.Location() != time.UTC {
				t.Errorf("%s, role %d: autocommit %d, the time is %s, noon is %s", query, role, autocommit, now, noon)
			}
			if _, err := db.ExecContext(t.Context(), "SELECT 1; SELECT 2"); err == nil {
				t.Errorf("%s, role %d: two statements in one", query, role)
			}
		}
	}
}

// A limit of the URL is for dealers. The driver sets variables in random order.
func TestStatementLimitOfTheURL(t *testing.T) {
	url := testdb.URL(t, testdb.MariaDB) + "?max_statement_time=600"
	for role, want := range map[sqldb.Role]float64{sqldb.RoleStore: 10, sqldb.RoleHeartbeat: 10, sqldb.RoleDealers: 600} {
		for range 10 {
			var got float64
			if err := open(t, url, role).QueryRowContext(t.Context(), "SELECT @@max_statement_time").Scan(&got); err != nil || got != want {
				t.Fatalf("role %d: max_statement_time is %v s, want %v s: %v", role, got, want, err)
			}
		}
	}
}

func TestParameters(t *testing.T) {
	for query, want := range map[string]string{
		"allowAllFiles=true":                     `parameter allowAllFiles ("true") is refused: the server could read the files of this host`,
		"strict=true":                            `parameter strict ("true") is refused: the driver has no such mode any more`,
		"timeTruncate=1s":                        `parameter timeTruncate ("1s") is refused: times have microseconds`,
		"foreign_key_checks=0":                   `parameter foreign_key_checks ("0") is refused: a dealer could break its own tables`,
		"transaction_isolation=READ-UNCOMMITTED": `parameter transaction_isolation ("READ-UNCOMMITTED") must be 'READ-COMMITTED', 'REPEATABLE-READ' or 'SERIALIZABLE', in single quotes: otherwise the roster would read what is never committed`,
		"wait_timeout=1,autocommit%3D0":          `parameter wait_timeout ("1,autocommit=0") must be a number, a word, or words in single quotes`,
		"charset=gbk":                            `parameter charset ("gbk") must be utf8mb4: in other character sets a parameter can end its quotes`,
		"charset=utf8mb4&charset=gbk":            `parameter charset must be given once, not 2 times`,
		"pasword=secret":                         `parameter pasword is refused: its effect on the roster is not known`,
		"a%20b=secret":                           `a parameter behind the question mark has no valid name`,
	} {
		if err := URL("mysql://u@h/d?" + query).Err; err == nil || err.Error() != "database URL: "+want {
			t.Errorf("%s:\n got %v\nwant database URL: %s", query, err, want)
		}
	}
	for _, query := range []string{"wait_timeout=60", "sql_mode=%27ANSI,TRADITIONAL%27", "transaction_isolation=%27READ-COMMITTED%27", "timeout=5s", "compress=true"} {
		if err := URL("mysql://u@h/d?" + query).Err; err != nil {
			t.Errorf("%s: %v", query, err)
		}
	}
}

// A new version of the driver may have new parameters.
func TestTheTableHasAllParametersOfTheDriver(t *testing.T) {
	driver := testdb.SourceNames(t, "github.com/go-sql-driver/mysql", "dsn.go", `(?m)^\t\tcase "([A-Za-z]+)":$`)
	driver = slices.DeleteFunc(driver, func(name string) bool { return slices.Contains([]string{"tcp", "unix", "true", "preferred"}, name) })
	if len(driver) < 20 {
		t.Fatalf("the driver has only %s", driver)
	}
	for _, name := range driver {
		if _, ok := params[name]; !ok {
			t.Errorf("the table lacks %s", name)
		}
	}
	for name := range params {
		variable := strings.Contains(name, "_") || name == "autocommit" || name == "socket"
		if !variable && !slices.Contains(driver, name) {
			t.Errorf("the driver lacks %s", name)
		}
	}
}

// An administrator looks for it in performance_schema.session_connect_attrs.
func TestProgramName(t *testing.T) {
	for query, want := range map[string]string{
		"": "program_name:rota", "?connectionAttributes=team:pay": "team:pay,program_name:rota", "?connectionAttributes=program_name:mine": "program_name:mine",
	} {
		u, err := sqldb.ParseURL("mysql://u@h/d"+query, "mysql", "mysql")
		if err != nil {
			t.Fatal(err)
		}
		cfg, err := config(u)
		if err != nil {
			t.Fatal(err)
		}
		if force(cfg, sqldb.RoleStore, sqldb.PoolOptions{}, nil); cfg.ConnectionAttributes != want {
			t.Errorf("%s: %s, want %s", query, cfg.ConnectionAttributes, want)
		}
	}
}
