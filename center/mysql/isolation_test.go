package mysql

import "testing"

func TestBinaryLogOfStatementsIsRefused(t *testing.T) {
	for _, c := range []struct {
		logBin, format string
		refused        bool
	}{
		{"ON", "STATEMENT", true}, {"ON", "MIXED", false}, {"ON", "ROW", false}, {"OFF", "STATEMENT", false}, {"ON", "", false},
	} {
		if err := refuseStatements(c.logBin, c.format); (err != nil) != c.refused {
			t.Errorf("log_bin %s, binlog_format %q: error %v, want one: %t", c.logBin, c.format, err, c.refused)
		}
	}
}
