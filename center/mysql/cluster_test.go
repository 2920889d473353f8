package mysql

import (
	"strings"
	"testing"

	"github.com/dutyrota/rota/internal/sqldb"
)

// F3 F8: on Galera the fence writes, and a Group Replication with several primaries is refused.
func TestServersThatSeveralWritersShare(t *testing.T) {
	for _, c := range []struct {
		values map[string]string
		want   *sqldb.Dialect
		err    string // part of the error
	}{
		{nil, dialect, ""},
		{map[string]string{wsrepOn: "OFF"}, dialect, ""},
		{map[string]string{wsrepOn: "ON"}, galera, ""},
		{map[string]string{singlePrimary: "ON"}, dialect, ""},
		{map[string]string{singlePrimary: "OFF"}, nil, "several primaries (group_replication_single_primary_mode = OFF)"},
	} {
		d, err := writers(c.values)
		if d != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%v: dialect %p, error %v; want %p, %q", c.values, d, err, c.want, c.err)
		}
	}
	if dialect.WriteFence || !galera.WriteFence {
		t.Errorf("fence by writing: %t, on Galera %t", dialect.WriteFence, galera.WriteFence)
	}
}
