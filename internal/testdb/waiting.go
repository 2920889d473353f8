package testdb

import (
	"database/sql"
	"errors"
	"strings"
	"testing"
)

// Waiting returns how many sessions of the database at url wait for a lock; db is a pool for it. SQLite has no such
// sessions. On MariaDB it takes 150 ms, and longer if other tests ask at the same time.
func Waiting(t testing.TB, url string, db *sql.DB) (n int) {
	t.Helper()
	if strings.HasPrefix(url, MySQL) {
		return waitingInInnoDB(t, db)
	}
	err := db.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
		WHERE a.datname = current_database() AND NOT l.granted`).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// waitingInInnoDB reads innodb_trx. MariaDB repeats its previous answer if anybody has read the table within the last
// 100 ms. Two tests that poll beside each other would get the same old answer for ever, so the readers of all processes
// take turns.
func waitingInInnoDB(t testing.TB, db *sql.DB) (n int) {
	t.Helper()
	sessions, err := processlist(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}()
	var turn, ignored int
	err = errors.Join(
		conn.QueryRowContext(t.Context(), `SELECT GET_LOCK('rota_test_innodb_trx', 60)`).Scan(&turn),
		conn.QueryRowContext(t.Context(), `SELECT SLEEP(0.15)`).Scan(&ignored),
		conn.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM information_schema.innodb_trx x
			JOIN `+sessions+` p
			ON p.id = x.trx_mysql_thread_id WHERE p.db = DATABASE() AND x.trx_state = 'LOCK WAIT'`).Scan(&n),
		conn.QueryRowContext(t.Context(), `SELECT RELEASE_LOCK('rota_test_innodb_trx')`).Scan(&ignored),
	)
	if err != nil || turn != 1 {
		t.Fatalf("read innodb_trx: %v, turn %d", err, turn)
	}
	return n
}
