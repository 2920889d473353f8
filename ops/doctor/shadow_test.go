package doctor_test

import (
	"database/sql"
	"net/url"
	"strings"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/testdb"
)

// execURL executes statements on a connection of its own.
func execURL(t *testing.T, url string, statements ...string) {
	t.Helper()
	db, err := sql.Open("postgres", url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, s := range statements {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func TestDoctorTellsWhereOthersMayCreate(t *testing.T) {
	t.Parallel()
	raw := testdb.URL(t, testdb.Postgres)
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	other := "other_" + strings.Trim(u.Path, "/")
	execURL(t, raw, "CREATE ROLE "+other, "CREATE SCHEMA open", "CREATE SCHEMA aside", "REVOKE CREATE ON SCHEMA public FROM PUBLIC")
	t.Cleanup(func() {
		db, err := sql.Open("postgres", raw)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.Exec("DROP OWNED BY " + other + "; DROP ROLE " + other); err != nil { // t.Context has ended by now
			t.Error(err)
		}
	})
	c := centertest.Open(t, raw+"&search_path=public,open", center.Options{})
	wantFinding(t, c, "search_path", "OK no other role may create in public, open")
	execURL(t, raw, "GRANT CREATE ON SCHEMA open TO "+other, "GRANT CREATE ON SCHEMA public TO PUBLIC", "GRANT CREATE ON SCHEMA aside TO PUBLIC")
	const does = ": its functions and operators could run in our statements, with the rights of this role"
	wantFinding(t, c, "search_path", "NOTE PUBLIC may CREATE in schema public"+does)
	wantFinding(t, c, "search_path", "NOTE "+other+" may CREATE in schema open"+does)
	if list := strings.Join(findingsOf(t, c, "search_path"), "\n"); strings.Contains(list, "aside") {
		t.Errorf("a schema that is not on the path: %s", list)
	}
}
