// Package postgres opens rosters on PostgreSQL 14 and newer, through lib/pq. It is a package of its own, so that a
// program links only the driver of the database that it uses:
//
//	c, err := center.Open(ctx, postgres.URL(os.Getenv("ROTA_DATABASE")), center.Options{})
//
// # What is forced on connections
//
// binary_parameters on all connections, those for dealers included: without it a statement with parameters is two round
// trips, which PgBouncer in transaction mode sends to two servers, so that the rows of another statement come back.
//
// url.go says what happens to each parameter of the URL, to PGOPTIONS and to settings of the session.
//
// Deadlines for reads and writes on the roster's own connections, because lib/pq does not heed a context when the
// network swallows packets (its issue 620). Connections for dealers have longer ones (center.Options.ReplyTimeout,
// F10), and those for migrations have only keep-alive, because their statements may take any time.
//
// sslmode=disable if all hosts are loopback hosts and require elsewhere, unless the URL or PGSSLMODE says otherwise:
// the default of lib/pq refuses a server without TLS, which is what runs on a developer's own machine.
//
// The roster's own statements are prepared when they are repeated, if there is no proxy between the program and the
// server: parsing and planning are four fifths of their cost. The package compares the two ends of the connection as
// the server sees them with the ends that the program sees.
//
// A transaction that has waited for a lock for a second gives up and is retried (lock_timeout): a server does not
// notice that a client is gone while its session waits for a lock. The server ends a transaction whose client is gone
// after ten seconds (idle_in_transaction_session_timeout), and a statement that has run for ten seconds, because its
// client no longer waits (statement_timeout). It ends a connection whose client takes no rows for ten seconds, such as
// one that is stopped while it reads a large roster (tcp_user_timeout, over TCP and where the server runs on Linux).
// The first statement of each transaction sets all of them, because PgBouncer refuses them as settings of the
// connection.
//
// The fencing statement limits, for its transaction, how long a client may be silent (center.Options.IdleTxTimeout).
// Otherwise a host that vanishes would keep its queues until TCP notices. tcp_user_timeout does the same while the
// server sends.
//
// The same statements set synchronous_commit = on, unless it is remote_apply, whatever the default of the server or of
// the role is (L9).
//
// Expressions have exactly the types of operators of PostgreSQL, by casts where needed: for other types PostgreSQL
// looks for an operator on the search path before it casts, so that a role that may CREATE there could run code as
// ours. The columns of names are varchar, which has no operators of its own, so that this does not protect comparisons
// of names: the doctor names the schemas in which other roles may CREATE.
//
// A connection is closed on which the server has refused a write because it is read-only (sqldb.Leaving).
//
// The isolation level is the server's default, READ COMMITTED.
//
// # Own connections
//
// [Connector] takes a database/sql connector of the program, and so another driver such as pgx. It forces nothing on
// the connections, and asks each connection for its settings. Package internal/pgxtest runs the conformance suite over
// pgx.
//
// # Why not
//
// URL keeps lib/pq. pgx prepares statements by default, which PgBouncer in transaction mode does not support without
// further settings, and a program that has pgx already passes it to Connector.
package postgres
