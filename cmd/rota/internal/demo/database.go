package demo

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/internal/sqldb"
)

// database is the database of the demo. On a server, all tables with names of the demo or of Rota are the demo's own,
// because openDatabase refuses a database that has such tables already.
type database struct {
	*sql.DB
	sqldb.Database
	server string // its product and version
}

// openDatabase connects to a new SQLite file, or to a database on a server, which must have no tables of the demo yet,
// and creates the table orders. Of two demos that begin at once, one cannot.
func openDatabase(ctx context.Context, url string) (*database, error) {
	d := &database{Database: anydb.URL(url)}
	if d.Err != nil {
		return nil, fmt.Errorf("--database: %w", d.Err)
	}
	var err error
	if d.DB, err = d.Pool(sqldb.RoleDealers, sqldb.PoolOptions{Create: true}); err != nil {
		return nil, fmt.Errorf("--database %s: %w", d.Address, err)
	}
	if err = d.check(ctx); err == nil {
		_, err = d.ExecContext(ctx, createOrders)
	}
	if err != nil {
		return nil, fmt.Errorf("--database %s: %w", d.Address, errors.Join(sqldb.OneLine(err), d.Close()))
	}
	return d, nil
}

// check asks which server it is, and refuses tables with names of the demo.
func (d *database) check(ctx context.Context) error {
	if err := sqldb.Connect(ctx, d.DB); err != nil {
		return err
	}
	found, err := d.Probe(ctx, d.DB)
	if err != nil {
		return err
	}
	if err := d.QueryRowContext(ctx, found.Version).Scan(&d.server); err != nil {
		return err
	}
	tables, err := d.tables(ctx)
	if err == nil && len(tables) > 0 {
		err = fmt.Errorf("%s exists; the demo needs a database without orders and schedule_... tables", tables[0])
	}
	return err
}

// leave says that the tables stay, or removes them, also after a Ctrl-C.
func (d *database) leave(ctx context.Context, out io.Writer, keep bool) error {
	if keep {
		printf(out, "Tables kept in %s: orders and schedule_...\n", d.Address)
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveLimit)
	defer cancel()
	tables, err := d.tables(ctx)
	for _, table := range tables {
		_, dropErr := d.ExecContext(ctx, "DROP "+table)
		err = errors.Join(err, dropErr)
	}
	if err != nil {
		return fmt.Errorf("remove the tables of the demo from %s: %w", d.Address, err)
	}
	printf(out, "Removed the tables of the demo from %s\n", d.Address)
	return nil
}

// tables lists the tables of the demo and of Rota as DROP names them. The views, which depend on tables, come first.
func (d *database) tables(ctx context.Context) (list []string, err error) {
	_, rows, err := read(ctx, d.DB, d.Dialect.Tables)
	for _, r := range rows {
		if name := strings.ToLower(r[1]); name == "orders" || strings.HasPrefix(name, "schedule_") {
			list = append(list, r[0]+" "+r[1])
		}
	}
	return list, err
}

// createOrders creates the user's table of work. The statements are the same on every database.
const createOrders = `CREATE TABLE orders (id INTEGER NOT NULL PRIMARY KEY, state VARCHAR(10) NOT NULL,
	settled_by VARCHAR(150), effects INTEGER NOT NULL)`

// fillOrders makes the orders.
func fillOrders(ctx context.Context, db *sql.DB) error {
	statements := []string{
		`CREATE INDEX orders_state ON orders (state, id)`,
		`INSERT INTO orders (id, state, effects) VALUES (1, 'NEW', 0)`,
	}
	for n := 1; n < orderCount; n *= 2 {
		statements = append(statements, moreOrders(n, orderCount-n))
	}
	for _, statement := range statements {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

// moreOrders returns the statement that makes new orders behind the last one, at most some.
func moreOrders(last, some int) string {
	const insert = `INSERT INTO orders (id, state, effects) SELECT id + %d, 'NEW', 0 FROM orders WHERE id <= %d`
	return fmt.Sprintf(insert, last, some)
}
