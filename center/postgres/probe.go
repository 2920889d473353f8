package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/lib/pq"

	"github.com/dutyrota/rota/internal/sqldb"
)

func probe(ctx context.Context, db *sql.DB) (sqldb.Server, error) {
	var version int
	var name, readOnly, source string
	var standby bool
	err := db.QueryRowContext(ctx, `SELECT CAST(current_setting('server_version_num') AS integer),
		current_setting('server_version'), current_setting('transaction_read_only'), pg_is_in_recovery(),
		(SELECT source FROM pg_settings WHERE name = 'default_transaction_read_only')`).
		Scan(&version, &name, &readOnly, &standby, &source)
	switch {
	case err != nil:
		err = fmt.Errorf("ask for the version: %w", err)
	case version < 140000:
		err = fmt.Errorf("PostgreSQL %s is too old: 14 or newer is needed", name)
	case standby:
		err = sqldb.TakesNoWrites("this PostgreSQL is a standby (a replica): connect to the primary")
	case readOnly == "on" && source == "client":
		err = errors.New("this connection is read-only (it sets default_transaction_read_only): a roster needs to write")
	case readOnly == "on":
		err = sqldb.TakesNoWrites("this PostgreSQL is read-only (default_transaction_read_only): a roster needs to write")
	}
	return sqldb.Server{}, err
}

func notes(ctx context.Context, db *sql.DB, cfg pq.Config) ([]sqldb.Note, error) {
	var isolation string
	err := db.QueryRowContext(ctx, `SELECT current_setting('default_transaction_isolation')`).Scan(&isolation)
	if err != nil {
		return nil, fmt.Errorf("ask for the isolation: %w", err)
	}
	list := []sqldb.Note{sqldb.IsolationNote(isolation, isolation == "read committed"), tlsNote(cfg)}
	creators, err := creatorNotes(ctx, db)
	if err != nil {
		return nil, err
	}
	list = append(list, creators...)
	// What stands between keeps direct from preparing statements. On a Unix socket that cannot be decided.
	prepares, err := sqldb.Prepares(ctx, db)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	if !prepares && !socket(servers(cfg)[0]) {
		list = append(list, sqldb.Note{
			Kind: "POOLER", Hint: "if it is PgBouncer, make sure that pool_mode is transaction or session, never statement",
			Finding: fmt.Sprintf("something stands between port %d and the server (PgBouncer, a proxy, a translated address): "+
				"statements are not prepared, and a heartbeat takes five times the processor time", cfg.Port),
		})
	}
	return list, nil
}
