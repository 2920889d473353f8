package mysql

import (
	"strings"
	"testing"

	"github.com/dutyrota/rota/internal/sqldb"
)

// F3 F8: on Galera the fence writes, and a Group Replication with several primaries is refused.
func TestServersThatSeveralWritersShare(t *testing.T) {
	for _, c := range []struct {
		server     *sqldb.Dialect
		values     map[string]string
		writeFence bool
		err        string // part of the error
	}{
		{mariadb, nil, false, ""},
		{mariadb, map[string]string{wsrepOn: "OFF"}, false, ""},
		{mariadb, map[string]string{wsrepOn: "ON"}, true, ""},
		{dialect, map[string]string{wsrepOn: "ON"}, true, ""}, // Percona XtraDB Cluster
		{dialect, map[string]string{singlePrimary: "ON"}, false, ""},
		{dialect, map[string]string{singlePrimary: "OFF"}, false, "several primaries (group_replication_single_primary_mode = OFF)"},
	} {
		d, err := writers(c.values, c.server)
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%v: error %v, want %q", c.values, err, c.err)
		}
		if err == nil && (d.Name != c.server.Name || d.WriteFence != c.writeFence) {
			t.Errorf("%v on %s: %s with a fence that writes: %t", c.values, c.server.Name, d.Name, d.WriteFence)
		}
	}
	if dialect.WriteFence || mariadb.WriteFence {
		t.Error("the fence of a single server writes")
	}
}
