package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/lib/pq"

	"github.com/dutyrota/rota/internal/sqldb"
)

func probe(ctx context.Context, db *sql.DB) (*sqldb.Dialect, error) {
	if err := checkVendor(ctx, db); err != nil {
		return nil, err
	}
	var version int
	var name, encoding, readOnly, source, path string
	var standby, noSchema bool
	err := db.QueryRowContext(ctx, `SELECT CAST(current_setting('server_version_num') AS integer),
		current_setting('server_version'), current_setting('server_encoding'),
		current_setting('transaction_read_only'), pg_is_in_recovery(),
		(SELECT source FROM pg_settings WHERE name = 'default_transaction_read_only'),
		current_schema() IS NULL, current_setting('search_path')`).
		Scan(&version, &name, &encoding, &readOnly, &standby, &source, &noSchema, &path)
	switch {
	case err != nil:
		err = fmt.Errorf("ask for the version: %w", err)
	case version < 140000:
		err = fmt.Errorf("PostgreSQL %s is too old: 14 or newer is needed", name)
	case encoding != "UTF8":
		err = fmt.Errorf("server_encoding of this database (%s) must be UTF8: a text that it cannot store, such as that of "+
			"an error, would fail the statements of all workers; use a database that was created with ENCODING 'UTF8' "+
			"TEMPLATE template0", encoding)
	case noSchema:
		err = fmt.Errorf("search_path (%s) must name a schema that exists and that this role may use: the tables of the "+
			"roster are in the first of them", path)
	case standby:
		err = sqldb.TakesNoWrites("this PostgreSQL is a standby (a replica): connect to the primary")
	case readOnly == "on" && source == "client":
		err = errors.New("this connection is read-only (it sets default_transaction_read_only): a roster needs to write")
	case readOnly == "on":
		err = sqldb.TakesNoWrites("this PostgreSQL is read-only (default_transaction_read_only): a roster needs to write")
	}
	return dialect, err
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
	durable, err := durabilityNotes(ctx, db)
	if err != nil {
		return nil, err
	}
	list = append(list, durable...)
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

// creatorsQuery returns the schemas on the search path, and in each the roles that may create objects there, except for
// this role, its owner and superusers. A schema without such a role has one row.
const creatorsQuery = `SELECT CAST(n.nspname AS text), CAST(CASE
	WHEN a.grantee = 0 THEN 'PUBLIC' ELSE r.rolname END AS text)
	FROM unnest(current_schemas(false)) WITH ORDINALITY AS p (name, place)
	JOIN pg_catalog.pg_namespace AS n ON n.nspname = p.name
	LEFT JOIN LATERAL aclexplode(COALESCE(n.nspacl, acldefault('n', n.nspowner))) AS a
		ON a.privilege_type = 'CREATE' AND a.grantee <> n.nspowner
		AND a.grantee NOT IN (SELECT o.oid FROM pg_catalog.pg_roles AS o WHERE o.rolsuper OR o.rolname = current_user)
	LEFT JOIN pg_catalog.pg_roles AS r ON r.oid = a.grantee
	ORDER BY p.place, 2`

// creatorNotes names the schemas on the search path in which other roles may create objects. PostgreSQL prefers a
// function or operator of any of these schemas with exactly the types of the arguments to one of its own.
func creatorNotes(ctx context.Context, db *sql.DB) (list []sqldb.Note, err error) {
	rows, err := db.QueryContext(ctx, creatorsQuery)
	if err != nil {
		return nil, fmt.Errorf("ask for the rights on schemas: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	path := ""
	for rows.Next() {
		var schema string
		var role sql.NullString
		if err := rows.Scan(&schema, &role); err != nil {
			return nil, fmt.Errorf("ask for the rights on schemas: %w", err)
		}
		if path != "" {
			path += ", "
		}
		path += schema
		if role.Valid {
			list = append(list, creatorNote(schema, role.String))
		}
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("ask for the rights on schemas: %w", err)
	}
	if len(list) == 0 {
		list = append(list, sqldb.Note{Kind: "SEARCH_PATH", OK: true, Finding: "no other role may create in " + path})
	}
	return list, nil
}

func creatorNote(schema, role string) sqldb.Note {
	return sqldb.Note{
		Kind: "SEARCH_PATH", Hint: fmt.Sprintf("REVOKE CREATE ON SCHEMA %s FROM %s", schema, role),
		Finding: fmt.Sprintf("%s may CREATE in schema %s: its functions and operators could run in our statements, "+
			"with the rights of this role", role, schema),
	}
}
