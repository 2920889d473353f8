package schema_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/schema"
)

// On MySQL, a statement that changes a table waits until no transaction uses the table, for a day by default. All later
// statements wait behind it, the heartbeats too.
func TestMigrationsLetOthersPass(t *testing.T) {
	url := testdb.URL(t, testdb.MySQL)
	c := centertest.Open(t, url, center.Options{})
	schema.TeachLater(t, 2)
	user, err := c.DB().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer user.Rollback()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	count := func(row *sql.Row) (n int) {
		t.Helper()
		if err := row.Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	count(user.QueryRowContext(ctx, `SELECT COUNT(*) FROM schedule_queue`))
	migrated := make(chan error, 1)
	go func() {
		_, to, err := center.Migrate(t.Context(), anydb.URL(url))
		if err == nil && to != 2 {
			t.Errorf("migrated to version %d", to)
		}
		migrated <- err
	}()
	for waiting := 0; waiting == 0; {
		waiting = count(c.DB().QueryRowContext(ctx, `SELECT COUNT(*) FROM information_schema.processlist
			WHERE db = DATABASE() AND state = 'Waiting for table metadata lock'`))
	}
	count(c.DB().QueryRowContext(ctx, `SELECT COUNT(*) FROM schedule_queue`)) // while the first transaction still uses it
	if err := user.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := <-migrated; err != nil {
		t.Fatal(err)
	}
	if n := count(c.DB().QueryRowContext(ctx, `SELECT COUNT(later) FROM schedule_queue`)); n != 0 {
		t.Errorf("%d queues", n)
	}
}
