package sqldealer

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/config"
	"github.com/dutyrota/rota/schema"
)

// database is where rows are: the roster's database, or a data database.
type database interface {
	DB() *sql.DB
	InTx(ctx context.Context, fn func(*sql.Tx) error) error
	ExecFenced(ctx context.Context, query string, args ...any) error
}

// rosterDatabase is the pool of the roster's database.
type rosterDatabase struct{ pool *sql.DB }

func (r rosterDatabase) DB() *sql.DB { return r.pool }

func (r rosterDatabase) InTx(ctx context.Context, fn func(*sql.Tx) error) error {
	return center.InTx(ctx, r.pool, fn)
}

func (r rosterDatabase) ExecFenced(ctx context.Context, query string, args ...any) error {
	return center.ExecFenced(ctx, r.pool, query, args...)
}

// Kinds are the databases that may hold rows: the roster's under the empty name, and the data databases.
type Kinds map[string]schema.Dialect

// place is a dealer of one database.
type place struct {
	*Dealer
	err error // why its statements cannot be used there
}

// New parses the statements of a task. It needs no database, so it finds errors before the worker connects or creates
// anything. It joins all errors; each names the key in the file and the rule. The dealer works in each of the databases
// that the settings of the task name, by statements of its kind, and in the other databases too, in case the settings
// of the roster are other ones. New returns the errors of the databases that the settings name.
func New(task config.Task, kinds Kinds) (*Dealer, error) {
	names, err := task.Settings.WithDefaults().Databases()
	if err != nil {
		return nil, fmt.Errorf("tasks.%s: %w", task.Name, err)
	}
	if len(names) == 0 {
		names = []string{""}
	}
	places := make(map[string]place, len(kinds))
	for name, kind := range kinds {
		d, errs := build(task, syntaxes[kind])
		for i, err := range errs {
			errs[i] = fmt.Errorf("tasks.%s.dealer.sql%w%s", task.Name, err, in(name))
		}
		if d != nil {
			d.task, d.name, d.places = task.Name, name, places
		}
		places[name] = place{d, errors.Join(errs...)}
	}
	for _, name := range names {
		at, known := places[name]
		if !known {
			at.err = fmt.Errorf("tasks.%s.database (%s): there is no data database %s", task.Name, task.Settings.Database, name)
		}
		if at.err != nil {
			return nil, at.err
		}
	}
	return places[names[0]].Dealer, nil
}

// Places returns the dealers of the databases that the settings name, by the names of these.
func (d *Dealer) Places(s center.Settings) (list []*Dealer) {
	names, _ := s.WithDefaults().Databases() // settings that name none for a queue are refused elsewhere
	if len(names) == 0 {
		names = []string{""}
	}
	for _, name := range names {
		if at, err := d.at(name); err == nil {
			list = append(list, at)
		}
	}
	return list
}

// Name returns the name of the data database; empty for the roster's database.
func (d *Dealer) Name() string { return d.name }

// at returns the dealer of a database.
func (d *Dealer) at(name string) (*Dealer, error) {
	if name == d.name {
		return d, nil
	}
	at, known := d.places[name]
	switch {
	case !known:
		return nil, fmt.Errorf("tasks.%s: there is no data database %q", d.task, name)
	case at.err != nil:
		return nil, at.err
	case at.database == nil:
		return nil, fmt.Errorf("tasks.%s: the database %q is not open", d.task, name)
	}
	return at.Dealer, nil
}

// in says in which data database something is, behind a text.
func in(name string) string {
	if name == "" {
		return ""
	}
	return " in " + name
}

// Use sets the pool of the roster's database, and the data databases. The caller calls it once, before all other
// methods.
func (d *Dealer) Use(pool *sql.DB, data ...*center.Data) *Dealer {
	d.use("", rosterDatabase{pool})
	for _, db := range data {
		d.use(db.Name(), db)
	}
	return d
}

func (d *Dealer) use(name string, db database) {
	if d.name == name {
		d.database = db
	}
	if at := d.places[name]; at.Dealer != nil {
		at.database = db
	}
}
