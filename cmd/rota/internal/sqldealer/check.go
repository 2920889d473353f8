package sqldealer

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Check asks the database of the dealer, and no other one, whether it knows all that the statements name. It changes
// nothing. It checks each statement within one transaction, for PgBouncer. An error for which Refused is true joins
// what is wrong with each statement, with task, statement and position. Any other error says nothing about the
// statements: the database may be away.
func (d *Dealer) Check(ctx context.Context) error {
	type check struct {
		name  string
		stmt  *statement
		probe func(context.Context, *sql.Tx) error
	}
	checks := []check{{"select", d.sel, func(ctx context.Context, tx *sql.Tx) error {
		return d.sel.probe(ctx, tx, &d.shape)
	}}}
	for _, a := range []*action{d.exec, d.discard} {
		if a != nil {
			checks = append(checks, check{a.name, a.statement, a.prepare})
		}
	}
	if d.backlog != nil {
		checks = append(checks, check{"backlog", d.backlog, d.backlog.prepare})
	}
	if h, ok := d.cursor.bounds().(*lagHorizon); ok {
		checks = append(checks, check{"cursor_newest", h.newest, h.newest.prepare})
	}
	var refused []error
	for _, s := range checks {
		if err := inRolledBackTx(ctx, d.database.DB(), s.probe); err != nil {
			if err = d.located(s.name, s.stmt, err); !Refused(err) {
				return err
			}
			refused = append(refused, err)
		}
	}
	if len(refused) > 0 {
		return errors.Join(refused...)
	}
	if err := inRolledBackTx(ctx, d.database.DB(), d.probePeek); err != nil {
		return d.located("select", d.sel, err)
	}
	return nil
}

// inRolledBackTx calls f in a transaction that has no effect.
func inRolledBackTx(ctx context.Context, db *sql.DB, f func(context.Context, *sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	return f(ctx, tx)
}

// probe prepares the select. If it has a limit, probe also runs it for no row: the columns of the result, which must
// fit the shape, and rights, are known only then.
func (s *statement) probe(ctx context.Context, tx *sql.Tx, sh *shape) error {
	if err := s.prepare(ctx, tx); err != nil || !s.uses(limit) {
		return err
	}
	none := s.values(func(name string) any {
		if name == limit {
			return 0
		}
		return nil
	})
	rows, err := tx.QueryContext(ctx, s.text(0), none...)
	if err != nil {
		return err
	}
	defer rows.Close()
	if _, err = sh.newReader(rows); err == nil {
		err = s.checkMineTypes(rows)
	}
	if err != nil {
		return &refusal{message: err.Error(), offset: -1}
	}
	return rows.Err()
}

// prepare makes the database parse the statement. SQLite's driver parses no earlier than it executes, so there the
// statement is explained.
func (s *statement) prepare(ctx context.Context, tx *sql.Tx) error {
	return s.syntax.prepare(ctx, tx, s.text(1), s.markCount(1))
}

// prepare makes the database parse a text with a number of marks.
func (sy syntax) prepare(ctx context.Context, tx *sql.Tx, text string, marks int) error {
	if !sy.parsesLate {
		stmt, err := tx.PrepareContext(ctx, text)
		if err == nil {
			defer stmt.Close() // in the transaction: after it, PgBouncer gives the session to another client
		}
		return err
	}
	rows, err := tx.QueryContext(ctx, "EXPLAIN "+text, make([]any, marks)...)
	if err != nil {
		return err
	}
	defer rows.Close()
	return rows.Err()
}

// Refused reports whether an error of Check is about the statement. The same statement then fails again.
func Refused(err error) bool {
	_, ok := errors.AsType[*refusal](err)
	return ok
}

// located returns the error of a statement with its place in the file.
func (d *Dealer) located(name string, s *statement, err error) error {
	r, ok := errors.AsType[*refusal](err)
	if !ok {
		r = refusalOf(err, s.text(1))
	}
	if r == nil {
		return fmt.Errorf("check tasks.%s.dealer.sql.%s%s: %w", d.task, name, in(d.name), err)
	}
	return fmt.Errorf("tasks.%s.dealer.sql.%s%s%s: %w", d.task, name, in(d.name), s.place(r.offset), r)
}
