package postgres

import (
	"slices"
	"testing"

	"github.com/dutyrota/rota/internal/testdb"
)

func TestParameters(t *testing.T) {
	const prefix = "database URL: "
	for query, want := range map[string]string{
		"port=secret":                           `parameter port ("secret") must be a port, or one for each host`,
		"target_session_attrs=standby":          `parameter target_session_attrs ("standby") must be read-write, primary or any: a roster needs to write`,
		"synchronous_commit=off":                `parameter synchronous_commit ("off") must be on or remote_apply: after a crash an epoch would be used twice`,
		"session_replication_role=replica":      `parameter session_replication_role ("replica") is refused: triggers and foreign keys would be off`,
		"DateStyle=German":                      `parameter DateStyle is refused: its effect on the roster is not known`,
		"pasword=secret":                        `parameter pasword is refused: its effect on the roster is not known`,
		"options=-c%20synchronous_commit%3Doff": `parameter synchronous_commit ("off") must be on or remote_apply: after a crash an epoch would be used twice`,
		"options=--transform-null-equals%3Don":  `parameter transform_null_equals ("on") is refused: = NULL would find rows`,
		"options=-c%20datestyle%3DGerman":       `options (PGOPTIONS) must not set what is forced on each connection: datestyle`,
		"options=-f%20s":                        `options (PGOPTIONS) must be a list of -c name=value, without white space in the values`,
		"sslmode=secure":                        `pq: wrong value for "sslmode": "secure" is not supported; supported values are disable, allow, prefer, require, verify-full, or verify-ca`,
	} {
		if err := URL("postgres://u@h/d?" + query).Err; err == nil || err.Error() != prefix+want {
			t.Errorf("%s:\n got %v\nwant %s", query, err, prefix+want)
		}
	}
	for _, query := range []string{
		"search_path=a,b", "options=-c%20search_path%3Da%20-cwork_mem%3D8MB%20--lock-timeout%3D1s", "TimeZone=Europe/Berlin",
		"binary_parameters=no", "datestyle=German", "client_encoding=latin1", "host=/run&port=1", "password=secret",
	} {
		if err := URL("postgres://u@h/d?" + query).Err; err != nil {
			t.Errorf("%s: %v", query, err)
		}
	}
	t.Setenv("PGOPTIONS", "-c synchronous_commit=off")
	if err := URL("postgres://u@h/d").Err; err == nil {
		t.Error("PGOPTIONS is not checked")
	}
}

// A new version of the driver may have new parameters.
func TestTheTableHasAllParametersOfTheDriver(t *testing.T) {
	driver := testdb.SourceNames(t, "github.com/lib/pq", "connector.go", "`postgres:\"([a-z_]+)\"")
	if len(driver) < 30 || !slices.Contains(driver, "sslmode") {
		t.Fatalf("the driver has only %s", driver)
	}
	for _, name := range driver {
		if _, ok := params[name]; !ok {
			t.Errorf("the table lacks %s", name)
		}
	}
}

// The settings that the table names, except for those of newer versions, are settings of the server.
func TestSettingsOfTheTableExist(t *testing.T) {
	driver := testdb.SourceNames(t, "github.com/lib/pq", "connector.go", "`postgres:\"([a-z_]+)\"")
	db := open(t, testdb.URL(t, testdb.Postgres))
	for name := range params {
		if slices.Contains(driver, name) {
			continue
		}
		var known bool
		if err := db.QueryRowContext(t.Context(), `SELECT current_setting($1, true) IS NOT NULL`, name).Scan(&known); err != nil || !known {
			t.Errorf("%s is no setting: %v", name, err)
		}
	}
}

// An administrator looks for it in pg_stat_activity.
func TestApplicationName(t *testing.T) {
	raw := testdb.URL(t, testdb.Postgres)
	for query, want := range map[string]string{"": "rota", "&application_name=mine": "mine", "&fallback_application_name=other": "other"} {
		var got string
		if err := open(t, raw+query).QueryRowContext(t.Context(), `SELECT current_setting('application_name')`).Scan(&got); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", query, got, err, want)
		}
	}
}
