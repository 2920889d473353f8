package mysql

import (
	"strings"
	"testing"
)

// F3 F8: on Galera the fence writes, and a Group Replication with several primaries is refused.
func TestServersThatSeveralWritersShare(t *testing.T) {
	for _, c := range []struct {
		values     map[string]string
		writeFence bool
		want       string // part of the error
	}{
		{nil, false, ""},
		{map[string]string{wsrepOn: "OFF"}, false, ""},
		{map[string]string{wsrepOn: "ON"}, true, ""},
		{map[string]string{singlePrimary: "ON"}, false, ""},
		{map[string]string{singlePrimary: "OFF"}, false, "several primaries (group_replication_single_primary_mode = OFF)"},
	} {
		s, err := writers(c.values)
		if s.WriteFence != c.writeFence || (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: fence by writing %t, error %v; want %t, %q", c.values, s.WriteFence, err, c.writeFence, c.want)
		}
	}
}
