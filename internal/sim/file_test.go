package sim

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/sqlite"
	"github.com/dutyrota/rota/internal/sqldb"
)

// file is a database of a world: an SQLite file that behaves like a server. All statements run under its lock and take
// no time: a process waits in its link, and for the turn to write.
type file struct {
	path string
	turn chan struct{} // holds a value while a connection has the turn to write

	mu     sync.Mutex
	writer *conn     // that has the turn
	heard  time.Time // when the writer's last statement ended
	down   bool      // nobody can reach it
	conns  map[*conn]bool
}

func newFile(path string) *file {
	return &file{path: path, turn: make(chan struct{}, 1), conns: map[*conn]bool{}}
}

// The database ends a transaction whose client has been silent for this long. Those of dealers are Options.IdleTxTimeout
// of center, which is 1 min by default (F6).
const (
	storeSilence  = 10 * time.Second
	dealerSilence = time.Minute
)

// errBusy is what a statement gets that has waited for the turn in vain, and a transaction that lost a deadlock.
var errBusy = fmt.Errorf("%w: simulated", sqldb.ErrRaced) // of the class RolledBack

// take waits for the turn to write. A writer that is silent for too long is thrown out.
func (f *file) take(ctx context.Context, c *conn) error {
	patience := time.NewTimer(c.patience())
	defer patience.Stop()
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for {
		select {
		case f.turn <- struct{}{}:
			f.mu.Lock()
			defer f.mu.Unlock()
			f.writer, f.heard = c, time.Now()
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-patience.C:
			return errBusy
		case <-look.C:
			f.throwOut()
		}
	}
}

// setDown lets the database go down, which closes all connections of processes, or come back.
func (f *file) setDown(down bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down = down
	for c := range f.conns {
		if down && !c.link.patient {
			f.breakLocked(c)
		}
	}
}

// throwOut ends the transaction of a writer that is silent for too long.
func (f *file) throwOut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if w := f.writer; w != nil && time.Since(f.heard) > w.silence() {
		f.breakLocked(w)
	}
}

// giveLocked ends the turn of a connection, if it has it.
func (f *file) giveLocked(c *conn) {
	if f.writer == c {
		f.writer = nil
		<-f.turn
	}
}

// breakLocked closes a connection as a server does: its transaction is rolled back.
func (f *file) breakLocked(c *conn) {
	if !c.broken {
		c.broken = true
		_ = c.real.Close() // rolls back
		delete(f.conns, c)
		f.giveLocked(c)
	}
}

// backup writes the committed state of the file to another one.
func (f *file) backup(ctx context.Context, to string) error {
	db, err := sqlite.URL("sqlite:"+f.path).Pool(sqldb.RoleDealers, sqldb.PoolOptions{})
	if err != nil {
		return err
	}
	defer db.Close()
	_ = os.Remove(to)
	_, err = db.ExecContext(ctx, `VACUUM INTO ?`, to)
	return err
}

// restore puts another state in the place of the file. All connections are lost.
func (f *file) restore(from string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.conns {
		f.breakLocked(c)
	}
	for _, suffix := range []string{"-wal", "-shm"} {
		if err := os.Remove(f.path + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return copyFile(from, f.path)
}

func copyFile(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o600)
}

// database returns the file as a process opens it: over the link.
func (f *file) database(l *link) sqldb.Database {
	d := sqlite.URL("sqlite:" + f.path)
	connect := d.Connector
	d.Connector = func(r sqldb.Role, o sqldb.PoolOptions) (driver.Connector, error) {
		c, err := connect(sqldb.RoleStore, o) // its connections prepare their statements, and nothing else differs here
		return connector{c, f, l, r}, err
	}
	return d
}

// makeTemplate makes a file with the tables of a roster, or with none. Its clock is that of the world: SQLite's own
// functions of time would read the real one.
func makeTemplate(path string, roster bool) error {
	ctx, d := context.Background(), sqlite.URL("sqlite:"+path)
	if roster {
		if _, _, err := center.Migrate(ctx, d); err != nil {
			return err
		}
	}
	db, err := d.Pool(sqldb.RoleSchema, sqldb.PoolOptions{Create: true})
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	statements := []string{
		`PRAGMA writable_schema = ON`,
		`UPDATE sqlite_schema SET sql = replace(sql, '` + quoted(columnNow) + `', 'rota_now()')`,
		`UPDATE sqlite_schema SET sql = replace(sql, '` + quoted(viewNow) + `', 'julianday(substr(rota_now(), 1, 23))')`,
		`PRAGMA writable_schema = RESET`,
		itemTable, sweptTable, effectTable,
	}
	if roster {
		statements = append(statements, recordTables...)
	}
	for _, statement := range statements {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	var left int
	if err := db.QueryRowContext(ctx, `SELECT COUNT(*) FROM sqlite_schema WHERE sql LIKE '%''now''%'`).Scan(&left); err != nil {
		return err
	}
	if left > 0 {
		return fmt.Errorf("%d tables and views of the template have another clock than the world", left)
	}
	_, err = db.ExecContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`)
	return err
}

// columnNow is the default of columns of times, viewNow the clock of the view, and plainNow that of statements for
// programs without Rota.
const (
	viewNow   = `julianday('now')`
	columnNow = `strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'`
	plainNow  = `strftime('%Y-%m-%d %H:%M:%f000', 'now')`
)

func quoted(text string) string { return strings.ReplaceAll(text, "'", "''") }
