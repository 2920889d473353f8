package center_test

import (
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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

type sqlResult = sql.Result

func openError(t *testing.T, url string, o center.Options) string {
	t.Helper()
	c, err := center.Open(t.Context(), anydb.URL(url), o)
	if err == nil {
		t.Fatal(errors.Join(errors.New("it opens"), c.Close()))
	}
	return err.Error()
}

func TestBadDatabases(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"oracle://app:secret@h/d": `database URL "oracle://app:xxxxx@h/d": unknown scheme "oracle"; want postgres, mysql or sqlite`,
		"sqlite:":                 `database URL "sqlite:": no file; want sqlite:FILE`,
	} {
		if got := openError(t, url, center.Options{}); got != want {
			t.Errorf("%s:\n got %s\nwant %s", url, got, want)
		}
		if _, _, err := center.Migrate(t.Context(), anydb.URL(url)); err == nil || err.Error() != want {
			t.Errorf("migrate %s:\n got %v\nwant %s", url, err, want)
		}
	}
	if _, err := center.Open(t.Context(), center.Database{}, center.Options{}); err == nil || !strings.HasPrefix(err.Error(), "no database: want postgres.URL(...)") {
		t.Errorf("the zero Database: %v", err)
	}
}

func TestBadOptions(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]center.Options{
		`schema ("maybe") must be auto, create or require`:                                {Schema: "maybe"},
		`own_sign (" x") must be printable, without white space around it`:                {OwnSign: " x"},
		`own_sign ("` + strings.Repeat("x", 51) + `") must have at most 50 bytes, not 51`: {OwnSign: strings.Repeat("x", 51)},
	} {
		if got := openError(t, "sqlite::memory:", o); got != want {
			t.Errorf("\n got %s\nwant %s", got, want)
		}
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"postgres://app:secret@127.0.0.1:1/d", "mysql://app:secret@127.0.0.1:1/d", "sqlite:/no/such/folder/x.db"} {
		got := openError(t, url, center.Options{})
		if !strings.Contains(got, "cannot connect") || strings.Contains(got, "secret") || strings.Contains(got, "\n") {
			t.Errorf("%s: %s", url, got)
		}
	}
}

func TestMySQLNeedsADatabase(t *testing.T) {
	t.Parallel()
	if got := openError(t, "mysql://app@127.0.0.1:1/", center.Options{}); !strings.Contains(got, "the URL names no database") {
		t.Error(got)
	}
}

func TestSchemaModes(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		got := openError(t, url, center.Options{Schema: center.SchemaRequire})
		if !strings.Contains(got, `run "rota migrate up"`) || strings.Contains(got, "\n") {
			t.Fatal(got)
		}
		c := centertest.Open(t, url, center.Options{}) // a loopback host: auto creates
		centertest.Open(t, url, center.Options{Schema: center.SchemaRequire})
		if _, err := c.Store().ExecContext(t.Context(), "INSERT INTO schedule_schema_version (version_id, is_applied) VALUES (999, TRUE)"); err != nil {
			t.Fatal(err)
		}
		centertest.Open(t, url, center.Options{}) // a rolling upgrade: the newer schema bears this program
		if _, err := c.Store().ExecContext(t.Context(), "UPDATE schedule_schema_lock SET oldest_companion = 999"); err != nil {
			t.Fatal(err)
		}
		if got := openError(t, url, center.Options{}); !strings.Contains(got, "install a newer rota") {
			t.Fatal(got)
		}
	})
}

func TestVoidDatabasesAreRefused(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		c := centertest.Open(t, url, center.Options{})
		execAll(t, c, "UPDATE schedule_schema_lock SET edition = 1")
		for _, mode := range []center.SchemaMode{center.SchemaAuto, center.SchemaCreate, center.SchemaRequire} {
			got := openError(t, url, center.Options{Schema: mode})
			if !strings.HasSuffix(got, ": "+schema.ErrVoid.Error()) || strings.Contains(got, "\n") {
				t.Errorf("schema %s: %s", mode, got)
			}
		}
	})
}

// What must be there already is not made by looking for it.
func TestNoFileIsLeftBehind(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "none.db")
	openError(t, "sqlite:"+path, center.Options{Schema: center.SchemaRequire})
	if _, err := center.MigrationStatus(t.Context(), sqlite.URL("sqlite:"+path)); err == nil {
		t.Error("the status of no file")
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("there is a file now: %v", err)
	}
}

func TestMigrate(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		from, to, err := center.Migrate(t.Context(), anydb.URL(url))
		if err != nil || from != 0 || to != schema.Latest() {
			t.Fatalf("%d -> %d, %v", from, to, err)
		}
		list, err := center.MigrationStatus(t.Context(), anydb.URL(url))
		if err != nil || list[0].AppliedAt.IsZero() {
			t.Fatalf("%+v, %v", list, err)
		}
		centertest.Open(t, url, center.Options{Schema: center.SchemaRequire})
	})
}

// A migration makes an index as long as the table is; other statements of the roster end after sqldb.IOTimeout.
func TestMigrationsTakeTheirTime(t *testing.T) {
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
		for name, way := range ways {
			t.Run(kind+"/"+name, func(t *testing.T) {
				t.Parallel()
				url, p := testdb.Through(t, testdb.URL(t, kind))
				var slow atomic.Bool
				p.Ambush(testdb.Ambush{Text: "schedule_event (", Strike: func() bool {
					slow.Store(true)
					time.Sleep(sqldb.IOTimeout + time.Second)
					return true
				}})
				if way(t, url); !slow.Load() {
					t.Error("no statement was slow")
				}
			})
		}
	}
}

func TestReadOnlyServersAreRefused(t *testing.T) {
	t.Parallel()
	t.Run("postgres", func(t *testing.T) {
		url := testdb.URL(t, testdb.Postgres)
		got := openError(t, url+"&default_transaction_read_only=on", center.Options{})
		if !strings.Contains(got, "read-only") {
			t.Fatal(got)
		}
	})
	t.Run("mysql", func(t *testing.T) {
		url := testdb.Own(t, testdb.MySQL).URL()
		exec(t, url, "SET GLOBAL read_only = 1")
		if got := openError(t, url, center.Options{}); !strings.Contains(got, "read-only") {
			t.Fatal(got)
		}
	})
}

func exec(t *testing.T, url, query string) {
	t.Helper()
	c := centertest.Open(t, url, center.Options{})
	if _, err := c.DB().ExecContext(t.Context(), query); err != nil {
		t.Fatal(err)
	}
}

func TestEngineWithoutTransactionsIsRefused(t *testing.T) {
	t.Parallel()
	url := testdb.URL(t, testdb.MySQL)
	exec(t, url, "ALTER TABLE schedule_server ENGINE = MyISAM")
	got := openError(t, url, center.Options{})
	if !strings.Contains(got, "table schedule_server has the engine MyISAM, which has no transactions: ALTER TABLE schedule_server ENGINE = InnoDB") {
		t.Fatal(got)
	}
}

func TestSettingsRules(t *testing.T) {
	t.Parallel()
	ok := center.Settings{Queues: 1}
	cases := map[string]func(*center.Settings){
		"": func(*center.Settings) {},
		"judge_dead_interval (8s) must be at least 5 x heartbeat_interval (2s)":                   func(s *center.Settings) { s.JudgeDeadInterval = 8 * time.Second },
		"heartbeat_interval (1ms) must be at least 100ms":                                         func(s *center.Settings) { s.HeartbeatInterval = time.Millisecond },
		"queues (0) must be between 1 and 100000":                                                 func(s *center.Settings) { s.Queues = 0 },
		"queues (-1) must be between 1 and 100000":                                                func(s *center.Settings) { s.Queues = -1 },
		"queues must be a number or a list of names, not both":                                    func(s *center.Settings) { s.QueueNames = []string{"x"} },
		`queue "x" is named twice`:                                                                func(s *center.Settings) { s.Queues, s.QueueNames = 0, []string{"x", "x"} },
		`queue ("x ") must be printable, without white space around it`:                           func(s *center.Settings) { s.Queues, s.QueueNames = 0, []string{"x "} },
		"queue must not be empty":                                                                 func(s *center.Settings) { s.Queues, s.QueueNames = 0, []string{""} },
		`processor_type ("FAST") must be SLEEP or NOTSLEEP`:                                       func(s *center.Settings) { s.ProcessorType = "FAST" },
		"thread_number (-1) must be between 1 and 10000":                                          func(s *center.Settings) { s.ThreadNumber = -1 },
		"sleep_time_interval (-1s) must not be negative":                                          func(s *center.Settings) { s.SleepTimeInterval = -time.Second },
		"cron (0 0 2 * * ?) must not be set where mode is CONTINUOUS: only runs have a beginning": func(s *center.Settings) { s.Cron = "0 0 2 * * ?" },
		"after (a) must not be set where mode is CONTINUOUS: only runs have a beginning":          func(s *center.Settings) { s.After = []center.After{{Upstream: "a"}} },
		"cron (0 0 2 * * ?) and every (1h0m0s) must not both be set": func(s *center.Settings) {
			s.Mode, s.Cron, s.Every = center.ModeRun, "0 0 2 * * ?", time.Hour
		},
		`cron "0 2 * *": has 4 fields, must have 6 or 7: second minute hour day-of-month month day-of-week [year]; seconds are required`: func(s *center.Settings) {
			s.Mode, s.Cron = center.ModeRun, "0 2 * *"
		},
		`time_zone ("Mars") must be a name in this host's tz database, such as Europe/Berlin`: func(s *center.Settings) {
			s.Mode, s.Cron, s.TimeZone = center.ModeRun, "0 0 2 * * ?", "Mars"
		},
		"every (1ms) must be from 1s to 8760h, in whole milliseconds": func(s *center.Settings) { s.Mode, s.Every = center.ModeRun, time.Millisecond },
		"after a: it is named twice": func(s *center.Settings) {
			s.Mode, s.After = center.ModeRun, []center.After{{Upstream: "a"}, {Upstream: "a"}}
		},
		`after a: rule ("X") must be SUCCESS or FINISHED`: func(s *center.Settings) {
			s.Mode, s.After = center.ModeRun, []center.After{{Upstream: "a", Rule: "X"}}
		},
		"item_retry_max (1s) must be at least item_retry (2s)": func(s *center.Settings) { s.ItemRetry, s.ItemRetryMax = 2*time.Second, time.Second },
	}
	for want, spoil := range cases {
		s := ok
		spoil(&s)
		got := ""
		if err := s.Validate(); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("\n got %s\nwant %s", got, want)
		}
	}
}
