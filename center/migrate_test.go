package center_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/center/sqlite"
	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/schema"
)

// Reading a SQLite file that does not exist must not create it.
func TestReadsCreateNoFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "none.db")
	openError(t, "sqlite:"+path, center.Options{Schema: center.SchemaRequire})
	if _, err := center.MigrationStatus(t.Context(), sqlite.URL("sqlite:"+path)); err == nil {
		t.Error("MigrationStatus of a missing file: got no error")
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("stat of the missing file: got %v, want %v", err, fs.ErrNotExist)
	}
}

func TestMigrate(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		from, to, err := center.Migrate(t.Context(), anydb.URL(url))
		if err != nil || from != 0 || to != schema.Latest() {
			t.Fatalf("Migrate: got %d to %d, %v, want 0 to %d", from, to, err, schema.Latest())
		}
		list, err := center.MigrationStatus(t.Context(), anydb.URL(url))
		if err != nil || list[0].AppliedAt.IsZero() {
			t.Fatalf("MigrationStatus: got %+v, %v, want an applied migration", list, err)
		}
		centertest.Open(t, url, center.Options{Schema: center.SchemaRequire})
	})
}

// A migration may take any time, for example to build an index. Other statements of the roster end after
// sqldb.IOTimeout.
func TestMigrationsHaveNoTimeout(t *testing.T) {
	t.Parallel()
	ways := map[string]func(t *testing.T, url string){
		"migrate": func(t *testing.T, url string) {
			if _, _, err := center.Migrate(t.Context(), anydb.URL(url)); err != nil {
				t.Error(err)
			}
		},
		"open": func(t *testing.T, url string) { centertest.Open(t, url, center.Options{Schema: center.SchemaCreate}) },
	}
	for _, kind := range []string{testdb.Postgres, testdb.MySQL} {
		for name, migrate := range ways {
			t.Run(kind+"/"+name, func(t *testing.T) {
				t.Parallel()
				url, p := testdb.Through(t, testdb.URL(t, kind))
				var delayed atomic.Bool
				p.Break(testdb.Breakpoint{Text: "schedule_event (", Reached: func() bool {
					delayed.Store(true)
					time.Sleep(sqldb.IOTimeout + time.Second)
					return true
				}})
				if migrate(t, url); !delayed.Load() {
					t.Error("no statement of the migration was delayed")
				}
			})
		}
	}
}
