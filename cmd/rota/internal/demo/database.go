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
	sqldb.Reading
	url     string
	address string // url without its password
}

// openDatabase connects to a new SQLite file, or to a database on a server, which must have no tables of the demo yet,
// and creates the table orders. Of two demos that begin at once, one cannot.
func openDatabase(ctx context.Context, url string) (*database, error) {
	to := anydb.URL(url)
	if to.Err != nil {
		return nil, fmt.Errorf("--database: %w", to.Err)
	}
	pool, err := to.Pool(sqldb.RoleDealers, sqldb.PoolOptions{Create: true})
	if err != nil {
		return nil, fmt.Errorf("--database %s: %w", to.Address, err)
	}
	d := &database{pool, sqldb.Reading{Queryer: pool, Dialect: to.Dialect}, url, to.Address}
	if err = sqldb.Connect(ctx, pool); err == nil {
		err = d.begin(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("--database %s: %w", d.address, errors.Join(sqldb.OneLine(err), d.Close()))
	}
	return d, nil
}

// createOrders creates the user's table of work, on every database.
const createOrders = `CREATE TABLE orders (id INTEGER NOT NULL PRIMARY KEY, state VARCHAR(10) NOT NULL,
	settled_by VARCHAR(150), effects INTEGER NOT NULL, UNIQUE (state, id))`

// begin creates the table orders, unless there are tables with names of the demo.
func (d *database) begin(ctx context.Context) error {
	tables, err := d.tables(ctx)
	if err != nil {
		return err
	}
	if len(tables) > 0 {
		return fmt.Errorf("%s exists; the demo needs a database without orders and schedule_... tables", tables[0])
	}
	_, err = d.ExecContext(ctx, createOrders)
	return err
}

// removeTables removes the tables of the demo, also after a Ctrl-C.
func (d *database) removeTables(ctx context.Context, out io.Writer) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveLimit)
	defer cancel()
	tables, err := d.tables(ctx)
	for _, table := range tables {
		_, dropErr := d.ExecContext(ctx, "DROP "+table)
		err = errors.Join(err, dropErr)
	}
	if err != nil {
		return fmt.Errorf("remove the tables of the demo from %s: %w", d.address, err)
	}
	printf(out, "Removed the tables of the demo from %s\n", d.address)
	return nil
}

// tables lists the tables of the demo and of Rota as DROP names them. The views, which depend on tables, come first.
func (d *database) tables(ctx context.Context) (list []string, err error) {
	all, err := sqldb.Records[struct{ Kind, Name string }](ctx, d, d.Dialect.Tables)
	for _, t := range all {
		if name := strings.ToLower(t.Name); name == "orders" || strings.HasPrefix(name, "schedule_") {
			list = append(list, t.Kind+" "+t.Name)
		}
	}
	return list, err
}

// fillOrders makes the orders: one, and then as many as there are already.
func (d *database) fillOrders(ctx context.Context) error {
	statement := `INSERT INTO orders (id, state, effects) VALUES (1, 'NEW', 0)`
	for n := 1; ; n *= 2 {
		if _, err := d.ExecContext(ctx, statement); err != nil || n >= orderCount {
			return sqldb.Wrap(err, "make the orders")
		}
		statement = moreOrders(n, orderCount-n)
	}
}

// moreOrders returns the statement that makes new orders behind the last one, at most some.
func moreOrders(last, some int) string {
	const insert = `INSERT INTO orders (id, state, effects) SELECT id + %d, 'NEW', 0 FROM orders WHERE id <= %d`
	return fmt.Sprintf(insert, last, some)
}
