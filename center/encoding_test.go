package center_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/testdb"
)

// F8: a database that cannot store every text is refused by its encoding, as a roster and as a data database, before
// anything is created in it.
func TestOtherEncodingsAreRefused(t *testing.T) {
	t.Parallel()
	server := testdb.Own(t, testdb.Postgres).URL()
	for _, encoding := range []string{"LATIN1", "SQL_ASCII"} {
		execURL(t, server, "CREATE DATABASE "+strings.ToLower(encoding)+" ENCODING '"+encoding+"' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
		u, err := url.Parse(server)
		must(t, err)
		u.Path = "/" + strings.ToLower(encoding)
		raw := u.String()
		want := "server_encoding of this database (" + encoding + ") must be UTF8: "
		wantRefused := func(operation string, err error) {
			t.Helper()
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: got %v, want one line with %q", operation, err, want)
			}
		}
		_, err = center.Open(t.Context(), anydb.URL(raw), center.Options{Schema: center.SchemaCreate})
		wantRefused("open", err)
		_, _, err = center.Migrate(t.Context(), anydb.URL(raw))
		wantRefused("migrate", err)
		_, err = center.MigrateData(t.Context(), anydb.URL(raw))
		wantRefused("migrate a data database", err)
		d, err := centertest.Open(t, testdb.URL(t, testdb.Postgres), center.Options{}).FenceIn("orders", anydb.URL(raw))
		must(t, err)
		_, err = d.Reach(t.Context())
		wantRefused("reach a data database", err)
	}
}
