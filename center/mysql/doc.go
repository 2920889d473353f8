// Package mysql opens rosters on MySQL 8 and newer, on MariaDB 10.6 and newer and on TiDB 8.5 and newer, through
// go-sql-driver/mysql. It is a package of its own, so that a program links only the driver of the database that it
// uses:
//
//	c, err := center.Open(ctx, mysql.URL(os.Getenv("ROTA_DATABASE")), center.Options{})
//
// # What is forced on connections
//
// On all connections, those for dealers included: parseTime; clientFoundRows, because a compare-and-set must count the
// matched rows and not the changed ones; interpolateParams, so that a statement is one round trip; UTC in the
// session and in the driver (loc); and autocommit, also where the server's default is autocommit=0. A connection whose
// server refuses a write because it is read-only is closed, so that after a fail-over the pool leaves the old primary;
// rejectReadOnly of the driver would do that as well, and hide the reason (sqldb.Leaving). A connection whose character
// set is not utf8mb4 is refused, whatever
// has set it: in GBK and similar character sets an interpolated parameter can end its quotes. url.go says what happens
// to each parameter of the URL.
//
// On the roster's own connections, those for migrations included: a strict sql_mode, so that nothing is cut off
// silently. A transaction that has waited for a lock for a second gives up and is retried (innodb_lock_wait_timeout):
// the end of a context closes the connection and not the statement, which would go on waiting in the server, by default
// for 50 s. MariaDB and TiDB end a transaction whose client is gone after ten seconds (idle_transaction_timeout,
// tidb_idle_transaction_timeout). MySQL has a limit for idle connections only (wait_timeout): those for transactions
// get it, and the pool replaces those that the server has closed. A server ends a connection whose client takes no rows
// for ten seconds (net_write_timeout). Reads and writes have deadlines, except for migrations.
//
// The server ends a statement that has run for ten seconds, because its client no longer waits (sqldb.IOTimeout):
// MariaDB each statement (max_statement_time), MySQL only a SELECT (max_execution_time). On MySQL an abandoned UPDATE
// or DELETE runs to its end. No statement of the roster changes more than some thousand rows, apart from the deletion
// of a task type's queues. KILL QUERY from another connection is not used: behind a balancer or a proxy it can reach
// another server, on which the number of the session belongs to another client.
//
// On those for dealers: MariaDB ends a statement at center.Options.ReplyTimeout (max_statement_time), and reads and
// writes have deadlines that are 5 s longer: otherwise a frozen node of a cluster would keep the queues whose calls
// wait for it (F10). MariaDB ends a transaction whose client is silent (idle_transaction_timeout) after
// center.Options.IdleTxTimeout. Otherwise a host that vanishes would keep its queues until TCP notices. MySQL has a
// limit for idle connections only (wait_timeout), which ends the transaction as well. The pool closes its idle
// connections earlier.
//
// A migration waits for the users of a table for two seconds and is then retried (lock_wait_timeout): while it waits,
// all new users of the table wait behind it.
//
// Only heartbeats are prepared: a server limits the number of statements that it holds for all clients
// (max_prepared_stmt_count). If the server refuses to prepare more, heartbeats are sent as text.
//
// On a Galera cluster, all connections but those for heartbeats set wsrep_sync_wait = 3, so that they see what other
// nodes have committed (F7). A dealer that uses a pool of its own on the cluster must set it there: center.InTx
// refuses a pool without it (F9). A pool of the roster asks the server at its first connection: restart the workers
// after a server has become a node of a cluster.
//
// The roster's own transactions are READ COMMITTED, as on PostgreSQL. At REPEATABLE READ, a MariaDB with
// innodb_snapshot_isolation (the default from 11.6.2 on) refuses to lock a row that has changed since the transaction
// first read (error 1020): a plan beside servers that save cursors would rarely be written. No statement relies on gap
// locks or on a snapshot across statements. Each transaction takes the lock row first, or locks the rows by their keys
// and changes them under conditions. Transactions of dealers have the server's default, REPEATABLE READ: the fence is
// their first statement and locks, so that it meets no older snapshot.
//
// A server that writes its binary log as statements (binlog_format) refuses transactions that are READ COMMITTED. Open
// refuses such a server.
//
// # The program's own connections
//
// Connector takes a database/sql connector of the program. Each new connection gets the same session variables in one
// statement (SET), and is asked in another one for what a statement can show and not change. What only the program can
// configure is asked for once, when the roster is opened: clientFoundRows, for one, by an UPDATE that changes nothing,
// in a transaction that is rolled back. own_connector.go has all of it.
//
// # Why not
//
// Connector does not take the driver's configuration (mysql.Config), in which everything could be forced: a tracing
// wrapper or another source of connections has none that can be read. It asks for clientFoundRows in a transaction and
// not with a temporary table, which needs a right that a worker's user does not have.
package mysql
