package sqldealer

import (
	"context"
	"database/sql"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dutyrota/rota/config"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/processor"
	"github.com/dutyrota/rota/schema"
)

const recordSale = "INSERT INTO seen (id) VALUES ({{row.id}})"

// The forms of a select with a cursor over sales.
var (
	xidSales = config.SQLDealer{
		Select: "SELECT xid, id FROM sales WHERE (xid, id) > ({{cursor.xid}}, {{cursor.id}}) AND xid < {{horizon}} AND {{index}} = 1 ORDER BY xid, id LIMIT {{limit}}",
		Key:    []string{"id"}, ExecuteEach: recordSale, Cursor: []string{"xid", "id"}, CursorStart: []string{"0", "0"},
	}
	lagSales = config.SQLDealer{
		Select: "SELECT id FROM sales WHERE id > {{cursor}} AND id <= {{horizon}} AND {{index}} = 1 ORDER BY id LIMIT {{limit}}",
		Key:    []string{"id"}, ExecuteEach: recordSale, CursorStart: zero, CursorLag: time.Minute, CursorNewest: "SELECT MAX(id) FROM sales",
	}
	orderedSales = config.SQLDealer{
		Select: "SELECT id FROM sales WHERE id > {{cursor}} AND {{index}} = 1 ORDER BY id LIMIT {{limit}}",
		Key:    []string{"id"}, ExecuteEach: recordSale, CursorStart: zero, CommitsInOrder: true,
	}
)

// salesReader reads sales from a cursor. It has a clock for the lag.
type salesReader struct {
	shop
	*Dealer
	selection processor.Selection
	clock     atomic.Int64
	keys      []string // of the rows that it has read, in order
}

func (s shop) salesReader(c config.SQLDealer) *salesReader {
	s.Helper()
	d := s.dealer(c)
	r := &salesReader{shop: s, Dealer: d, selection: selection()}
	if h, ok := d.cursor.bounds().(*lagHorizon); ok {
		h.now = func() time.Time { return time.Unix(0, r.clock.Load()) }
	}
	return r
}

// sell creates the table of sales and the table of what was read.
func (s shop) sell() {
	s.Helper()
	s.exec(map[schema.Dialect]string{
		schema.Postgres: "CREATE TABLE sales (id BIGSERIAL PRIMARY KEY, xid xid8 NOT NULL DEFAULT pg_current_xact_id(), total INTEGER)",
		schema.MySQL:    "CREATE TABLE sales (id BIGINT AUTO_INCREMENT PRIMARY KEY, total INTEGER)",
		schema.SQLite:   "CREATE TABLE sales (id INTEGER PRIMARY KEY AUTOINCREMENT, total INTEGER)",
	}[s.Dialect().Family()], "CREATE TABLE seen (id BIGINT)")
}

func (r *salesReader) tick(d time.Duration) { r.clock.Add(int64(d)) }

// read reads one page, executes it, moves the cursor, and returns the number of rows.
func (r *salesReader) read() int {
	r.Helper()
	rows, err := r.Select(r.Context(), r.selection)
	if err == nil {
		err = r.Execute(r.batch(7), rows)
	}
	if err != nil {
		r.Fatal(err)
	}
	for _, row := range rows {
		r.keys = append(r.keys, r.Key(row))
		r.selection.Queue.Cursor = r.Cursor(row)
	}
	return len(rows)
}

// eventually calls done until it returns true. The horizon of PostgreSQL is that of the whole server, so that the
// transactions of other tests may delay it.
func (s shop) eventually(what string, done func() bool) {
	s.Helper()
	for deadline := time.Now().Add(time.Minute); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.Fatalf("%s: not within a minute", what)
		}
	}
}

// begin starts a transaction that has inserted one row.
func (s shop) begin() *sql.Tx {
	s.Helper()
	tx, err := s.DB().BeginTx(s.Context(), nil)
	if err == nil {
		_, err = tx.ExecContext(s.Context(), "INSERT INTO sales (total) VALUES (1)")
	}
	if err != nil {
		s.Fatal(err)
	}
	return tx
}

func (s shop) commit(tx *sql.Tx) {
	s.Helper()
	if err := tx.Commit(); err != nil {
		s.Fatal(err)
	}
}

// A source that is only appended to is read in order from the cursor; its rows do not change.
func TestCursor(t *testing.T) {
	reads := config.SQLDealer{
		Select:      "SELECT id FROM orders WHERE id > {{cursor}} AND {{mine id}} ORDER BY id LIMIT {{limit}}",
		ExecuteEach: "UPDATE orders SET times = times + 1 WHERE id = {{row.id}}",
		Key:         []string{"id"}, CursorStart: zero, CommitsInOrder: true,
	}
	testdb.EachReused(t, func(t *testing.T, url string) {
		s := openShop(t, url)
		s.exec(orders...)
		d := s.dealer(reads)
		c := d
		sel := selection()
		var read []string
		for range 3 {
			rows, err := c.Select(t.Context(), sel)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range rows {
				read = append(read, c.Cursor(r))
				sel.Queue.Cursor = c.Cursor(r)
			}
			if err := d.Execute(s.batch(7), rows); err != nil {
				t.Fatal(err)
			}
		}
		if want := []string{"1", "3", "5", "7", "9"}; !slices.Equal(read, want) {
			t.Fatalf("read %v, want %v", read, want)
		}
		s.want("SELECT id, times FROM orders ORDER BY id", "1 1", "2 0", "3 1", "4 0", "5 1", "7 1", "9 1")
	})
}

// A row that is committed after one with a larger ID is read, in the order of the IDs of the transactions.
func TestCursorOfTransactions(t *testing.T) {
	elsewhere := openShop(t, testdb.Reused(t, testdb.Postgres)) // another database of the same server
	s := openShop(t, testdb.Reused(t, testdb.Postgres))
	elsewhere.sell()
	s.sell()
	for _, holder := range []shop{s, elsewhere} {
		s.exec("DELETE FROM sales", "DELETE FROM seen", "ALTER SEQUENCE sales_id_seq RESTART")
		late := holder.begin()
		if holder.Center == elsewhere.Center {
			s.commit(s.begin())
		}
		s.exec("INSERT INTO sales (total) VALUES (2)") // the second row is there before the first
		r := s.salesReader(xidSales)
		if n := r.read(); n != 0 {
			t.Errorf("%d rows were read while an older transaction may still write", n)
		}
		s.commit(late)
		s.eventually("both rows are read", func() bool { r.read(); return len(r.keys) >= 2 })
		if n := r.read(); n != 0 {
			t.Errorf("%d rows were read again", n)
		}
		if want := []string{"1", "2"}; !slices.Equal(r.keys, want) {
			t.Errorf("read %v, want %v", r.keys, want)
		}
		s.want("SELECT id FROM seen ORDER BY id", "1", "2")
	}
}

// A row that becomes visible within the lag after one with a larger ID is read.
func TestCursorWithLag(t *testing.T) {
	testdb.EachReused(t, func(t *testing.T, url string) {
		s := openShop(t, url)
		s.sell()
		r := s.salesReader(lagSales)
		want := func(rows int) {
			t.Helper()
			if n := r.read(); n != rows {
				t.Errorf("%d rows, want %d", n, rows)
			}
		}
		want(0) // no row at all
		s.exec("INSERT INTO sales (id, total) VALUES (2, 1)")
		r.tick(time.Second)
		want(0)
		r.tick(59 * time.Second)
		want(0) // the row was not seen a minute ago, although there was a select
		s.exec("INSERT INTO sales (id, total) VALUES (1, 1), (3, 1)")
		r.tick(time.Second)
		want(2) // not the third
		s.want("SELECT id FROM seen ORDER BY id", "1", "2")
		r.tick(10 * time.Second)
		want(0)
		r.tick(time.Minute)
		want(1)
	})
}

// Concurrent writers lose no row to a reader, whatever the order of their commits.
func TestCursorBesideWriters(t *testing.T) {
	testdb.EachReused(t, func(t *testing.T, url string) {
		forms := map[string]config.SQLDealer{"lag": lagSales}
		switch openShop(t, url).Dialect().Family() {
		case schema.Postgres:
			forms["xid"] = xidSales
		case schema.SQLite:
			forms["in order"] = orderedSales // a transaction draws the ID while it holds the only write lock
		}
		for name, form := range forms {
			t.Run(name, func(t *testing.T) {
				s := openShop(t, url)
				s.exec("DROP TABLE IF EXISTS sales", "DROP TABLE IF EXISTS seen")
				s.sell()
				r := s.salesReader(form)
				r.selection.Limit = 20
				var open sync.RWMutex           // the clock moves on by the lag when no transaction is open
				overlaps := make(chan struct{}) // a transaction may commit, as a page was read while it was open
				writers, ctx := errgroup.WithContext(t.Context())
				var running atomic.Int32
				for range 4 {
					running.Add(1)
					writers.Go(func() error {
						defer running.Add(-1)
						return s.writeSales(ctx, &open, overlaps)
					})
				}
				step := func() bool {
					ended := running.Load() == 0
					n := r.read()
					release(overlaps)
					if open.TryLock() {
						r.tick(time.Minute)
						open.Unlock()
					}
					return ended && n == 0
				}
				s.eventually("the writers end", step)
				if err := writers.Wait(); err != nil {
					t.Fatal(err)
				}
				var sold int
				if err := s.DB().QueryRowContext(t.Context(), "SELECT COUNT(*) FROM sales").Scan(&sold); err != nil {
					t.Fatal(err)
				}
				s.eventually("all rows are read", func() bool { return step() && len(r.keys) >= sold })
				s.want("SELECT COUNT(*) FROM sales s WHERE 1 <> (SELECT COUNT(*) FROM seen WHERE seen.id = s.id)", "0")
				s.want("SELECT (SELECT COUNT(*) FROM seen) - (SELECT COUNT(*) FROM sales)", "0")
				s.want("SELECT CASE WHEN COUNT(*) >= 80 THEN 'many' END FROM sales", "many")
			})
		}
	})
}

// release lets all waiting transactions commit.
func release(overlaps chan<- struct{}) {
	for {
		select {
		case overlaps <- struct{}{}:
		default:
			return
		}
	}
}

// writeSales inserts rows in transactions of several rows. It rolls back some of them. Half of the others wait until a
// page was read.
func (s shop) writeSales(ctx context.Context, open *sync.RWMutex, overlaps <-chan struct{}) error {
	for i := range 25 {
		open.RLock()
		tx, err := s.DB().BeginTx(ctx, nil)
		for range 1 + rand.N(4) {
			if err == nil {
				_, err = tx.ExecContext(ctx, "INSERT INTO sales (total) VALUES (1)")
			}
		}
		if err == nil && rand.N(2) == 0 && s.Dialect() != schema.SQLite { // there, the reader would wait for the lock of the writer
			select {
			case <-overlaps:
			case <-ctx.Done():
			}
		}
		if err == nil && i%5 == 4 {
			err = tx.Rollback()
		} else if err == nil {
			err = tx.Commit()
		}
		open.RUnlock()
		if err != nil {
			return err
		}
	}
	return nil
}
