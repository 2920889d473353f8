package mysql

import (
	"maps"
	"strings"
	"testing"
	"time"
)

// F9: the settings with which the fence does not hold, and the ones with which it does.
func TestUnfitSessions(t *testing.T) {
	for want, changes := range map[string]map[string]string{
		"":                                       {},
		"character_set_client (gbk) must be":     {"character_set_client": "gbk"},
		"character_set_connection (latin1) must": {"character_set_connection": "latin1"},
		"wsrep_sync_wait (0) must be 3: ":        {"wsrep_on": "ON", "wsrep_sync_wait": "0"},
		"wsrep_sync_wait (1) must be 3: ":        {"wsrep_on": "ON", "wsrep_sync_wait": "1"},
		"tidb_txn_mode (optimistic) must be":     {"tidb_txn_mode": "optimistic"},
		"tidb_txn_mode () must be pessimistic":   {"tidb_txn_mode": ""},
	} {
		values := map[string]string{"character_set_client": "utf8mb4", "character_set_connection": "utf8mb4", "wsrep_on": "OFF"}
		maps.Copy(values, changes)
		if got := unfit(values); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%v: %q, want %q", changes, got, want)
		}
	}
	for _, wait := range []string{"3", "7", "15"} {
		if got := unfit(map[string]string{"character_set_client": "utf8mb4", "character_set_connection": "utf8mb4", "wsrep_on": "ON", "wsrep_sync_wait": wait}); got != "" {
			t.Errorf("wsrep_sync_wait = %s: %q, want nothing", wait, got)
		}
	}
}

// F6: the limit of another pool is its own matter, and the program is told of it. MySQL has only the limit of a connection.
func TestIdleWarning(t *testing.T) {
	for _, c := range []struct {
		transaction, connection string
		limit                   time.Duration
		want                    string
	}{
		{"0", "28800", time.Minute, "idle_transaction_timeout = 0"},
		{"0", "60", time.Minute, ""},
		{"60", "28800", time.Minute, ""},
		{"3", "28800", 2500 * time.Millisecond, ""}, // whole seconds
		{"90", "28800", time.Minute, "idle_transaction_timeout = 90"},
		{"", "28800", time.Minute, "wait_timeout = 28800"},
		{"", "60", time.Minute, ""},
		{"0", "28800", 0, ""},
	} {
		for _, variable := range []string{idleVariable, idleVariableOfTiDB} {
			values := map[string]string{"wait_timeout": c.connection}
			if c.transaction != "" {
				values[variable] = c.transaction
			}
			if got := idleWarning(values, c.limit); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("%s: %+v: %q", variable, c, got)
			}
		}
	}
}
