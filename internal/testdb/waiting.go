package testdb

import (
	"database/sql"
	"strings"
	"testing"
)

// Waiting returns how many sessions of the database at url wait for a lock; db is a pool for it. MariaDB repeats its
// previous answer within 100 ms. SQLite has no such sessions.
func Waiting(t testing.TB, url string, db *sql.DB) (n int) {
	t.Helper()
	query := `SELECT COUNT(*) FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid WHERE a.datname = current_database() AND NOT l.granted`
	if strings.HasPrefix(url, MySQL) {
		query = `SELECT COUNT(*) FROM information_schema.innodb_trx x JOIN information_schema.processlist p ON p.id = x.trx_mysql_thread_id
			WHERE p.db = DATABASE() AND x.trx_state = 'LOCK WAIT'`
	}
	if err := db.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
