package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/internal/sqldb"
)

// Connector returns the database to which the connections of c lead, for a program that makes its own: with tokens of a
// cloud instead of a password, its own TLS configuration, a tracing wrapper, or pgx (stdlib.GetConnector). center.Open
// closes the pools that it makes from c, and not c itself.
//
// The roster asks each new connection for the settings on which its guarantees rest, and refuses a connection that
// differs, with the setting and the reason. It cannot ask for these properties of c, and relies on them:
//
//   - A statement ends with its context, also if the network is dead. pgx does so. With lib/pq alone it does not end:
//     URL adds a dialer that limits each read and write.
//   - Behind PgBouncer in transaction mode, statements are not prepared: default_query_exec_mode=exec of pgx, or
//     binary_parameters=yes of lib/pq.
//   - A connection ends on which the server has refused a write because it is read-only (SQLSTATE 25006): a session
//     that began while its database was read-only stays so. URL closes it, and pgx does so if OnPgError returns false.
//
// A connector cannot receive notifications, because database/sql has none. So the program hears hints
// (manager.Config.NoHints) only if it sets the field Listen of the result. Listen connects by itself, executes LISTEN
// for the channel, calls ready, and then got with the payload of each notification. It returns when ctx is done or the
// connection is lost, which it finds out by pings. docs/worker.md has one for pgx.
//
// Unlike URL, Connector prepares no statements by itself, does not know whether the server is on this host, and so
// creates the tables only with center.SchemaCreate.
func Connector(c driver.Connector) sqldb.Database {
	if c == nil {
		return sqldb.Database{Err: errors.New("postgres.Connector: the connector is nil")}
	}
	return sqldb.Database{
		Dialect:   dialect,
		Address:   fmt.Sprintf("postgres (connections of %T)", c),
		Connector: func(sqldb.Role, sqldb.PoolOptions) (driver.Connector, error) { return asking{c}, nil },
		Probe:     probe,
		CheckTx:   checkTx,
		Notes:     ownNotes,
	}
}

// asking is a connector of the program. It refuses connections on which the roster's statements would mean something
// else.
type asking struct{ driver.Connector }

// required are the settings of a session that correctness needs. URL refuses or forces the same (params). The roster's
// transactions set synchronous_commit themselves.
var required = []struct{ name, value, why string }{
	{"client_encoding", "UTF8", "names would be read as others"},
	{"standard_conforming_strings", "on", "a backslash would have a meaning"},
	{"session_replication_role", "origin", "triggers and foreign keys would be off"},
	{"transform_null_equals", "off", "= NULL would find rows"},
}

// Connect implements driver.Connector. It makes a connection and asks for its settings, in one more round trip.
func (a asking) Connect(ctx context.Context) (driver.Conn, error) {
	return sqldb.ConnectOwn(ctx, a.Connector, askSettings)
}

// askSettings returns an error that names the first setting with a wrong value.
func askSettings(ctx context.Context, conn sqldb.OwnConn) error {
	columns := make([]string, len(required))
	for i, s := range required {
		columns[i] = "current_setting('" + s.name + "')"
	}
	row, err := sqldb.Row(ctx, conn, "SELECT "+strings.Join(columns, ", "))
	if err != nil {
		return fmt.Errorf("ask for the settings of the connection: %w", err)
	}
	for i, s := range required {
		if value := sqldb.ValueText(row[i]); value != s.value {
			return fmt.Errorf("%s of the connection (%s) must be %s: %s", s.name, value, s.value, s.why)
		}
	}
	return nil
}

// ownNotes returns what an operator should know about connections that the program makes itself.
func ownNotes(ctx context.Context, db *sql.DB) ([]sqldb.Note, error) {
	var isolation string
	var encrypted sql.NullBool
	err := db.QueryRowContext(ctx, `SELECT current_setting('default_transaction_isolation'),
		(SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid())`).Scan(&isolation, &encrypted)
	if err != nil {
		return nil, fmt.Errorf("ask for the isolation: %w", err)
	}
	tls := sqldb.Note{Kind: "TLS", OK: true, Finding: "encrypted; the program's own connector decides what is verified"}
	if !encrypted.Bool {
		tls = sqldb.Note{Kind: "TLS", OK: true, Finding: "not encrypted, by the choice of the program's own connector"}
	}
	creators, err := creatorNotes(ctx, db)
	if err != nil {
		return nil, err
	}
	durable, err := durabilityNotes(ctx, db)
	list := []sqldb.Note{sqldb.IsolationNote(isolation, isolation == "read committed"), tls}
	return slices.Concat(list, creators, durable), err
}

// checkTx asks a transaction of a pool that the program opened itself (F9). The limit for idle transactions needs no
// question: the fence sets it in each transaction.
func checkTx(ctx context.Context, tx *sql.Tx, _ time.Duration) (found sqldb.PoolFinding, err error) {
	var encoding, readOnly string
	err = tx.QueryRowContext(ctx,
		`SELECT current_setting('client_encoding'), current_setting('transaction_read_only')`).Scan(&encoding, &readOnly)
	switch {
	case err != nil:
	case encoding != "UTF8":
		found.Unfit = "client_encoding (" + encoding + ") must be UTF8: names would be read as others"
	case readOnly != "off":
		found.Unfit = "transaction_read_only (" + readOnly + ") must be off: the fence locks rows"
	}
	return found, err
}
