package anydb_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/internal/sqldb"
)

// optional are the fields of a dialect that may have their zero value. Their comments say what that means, and what
// stands in for a fragment that a database does not have.
var optional = []string{
	"OneWriter", "Numbered", "ByKey", "Share", "WriteFence", "SkipLocked", "LockServers", "Limits", "WaitInLine", "TryLine",
	"IdleLimit", "Durable", "Guard", "Notify", "PlainNow", "ValueTime",
}

func TestDialectsAreComplete(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"postgres://h/d", "mysql://h/d", "sqlite::memory:"} {
		d := anydb.URL(url).Dialect
		for _, d := range []*sqldb.Dialect{d, d.WithWriteFence()} {
			fields := reflect.ValueOf(d).Elem()
			for i := range fields.NumField() {
				if name := fields.Type().Field(i).Name; fields.Field(i).IsZero() && !slices.Contains(optional, name) {
					t.Errorf("%s has no %s", d.Name, name)
				}
			}
			if rowLocks := !d.OneWriter; rowLocks && (d.SkipLocked == "" || d.LockServers == "" || d.Share == "" && !d.WriteFence) {
				t.Errorf("%s: nothing stands in for SkipLocked, LockServers or Share", d.Name)
			}
			if line := d.WaitInLine != ""; line != (d.TryLine != "") || line && d.Limits == "" {
				t.Errorf("%s has a line without a way to try it, or to pass it", d.Name)
			}
		}
	}
}
