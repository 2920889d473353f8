package schema

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/internal/testdb"
)

func TestStatus(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		db, d := session(t, url, awayFromUTC(url))
		got, err := Status(t.Context(), db, d)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(known.steps, got); diff != "" {
			t.Errorf("before (-want +got):\n%s", diff)
		}
		if _, _, err := Up(t.Context(), db, d); err != nil {
			t.Fatal(err)
		}
		got, err = Status(t.Context(), db, d)
		if err != nil || len(got) != len(known.steps) || got[0].Name != "roster" || got[0].AppliedAt.Location() != time.UTC {
			t.Fatalf("after: %+v, %v", got, err)
		}
		if age := time.Since(got[0].AppliedAt).Abs(); age > time.Hour {
			t.Errorf("applied at %s, which is %s off", got[0].AppliedAt, age)
		}
	})
}

// awayFromUTC returns a statement that puts a session into another time zone. SQLite has none.
func awayFromUTC(url string) string {
	switch {
	case strings.HasPrefix(url, "postgres"):
		return `SET TIME ZONE 'Asia/Tokyo'`
	case strings.HasPrefix(url, "mysql"):
		return `SET time_zone = '+09:00'`
	default:
		return `SELECT 1`
	}
}
