// Package schema holds the tables of the roster, for every dialect, and brings a database to them.
//
// # Migrations
//
// The directories postgres, mysql and sqlite hold the same migrations under the same numbers, as SQL that can
// be read, reviewed and, if need be, applied by hand. They are append-only: a migration that was released is
// never edited, because databases have it already, and columns are public: they are added, never renamed or
// taken away. There is no way down: a roster that was migrated back would lose what the newer version wrote
// into it. The previous version of the library runs beside the new schema: each file says which is the oldest
// that may, and schedule_schema_lock.oldest_companion says so to programs, which a rolling upgrade starts again.
//
// They are applied by goose, used as a library through its Provider, without its globals and its output: it is
// small, keeps one number line over all dialects, runs each migration in a transaction where the database can
// do that, and leaves the record of it in a plain table. Rejected: a runner of our own, which is easy until
// statements have to be split; tools that want to own the connection, the URL or the command line.
//
// # The lock
//
// Many processes may start at once on an empty database. One of them migrates: the one that holds a lease, a row
// in schedule_schema_lock that names the holder and the moment, by the database's clock, until which it is the
// holder. It is taken by one conditional UPDATE, renewed meanwhile, freed at the end, and after a holder that
// died it runs out. The same statements do it on every database, and need no session. Rejected:
//
//   - Advisory and named locks (pg_advisory_lock, GET_LOCK), and goose's own session locks: they belong to a
//     session, which PgBouncer in transaction mode hands to somebody else; Galera does not replicate them; SQLite
//     has none.
//   - A transaction that is held open over the whole migration: MySQL commits it at the first DDL statement,
//     and it needs a second connection, which a handle on SQLite may not have.
//   - goose's hook for a lock of this kind (WithLocker): goose creates its version table before it asks for the
//     lock, so that many that start at once race for it, and asks while it holds a connection.
//
// A lease excludes only processes that notice the time. One that was stopped for longer (SIGSTOP, a paused virtual
// machine) could go on beside its successor, so each migration renews the lease once more in the transaction
// that records its version, and fails if it is not the holder any more. On MySQL, where DDL commits by itself,
// its statements may still happen twice; they are written so that this does nothing.
//
// # Times and durations
//
// Times are UTC with microseconds, whatever the zone of session and server: timestamptz(6) on PostgreSQL,
// DATETIME(6) on MySQL, and on SQLite text of the form "2006-01-02 15:04:05.000000", always with six digits, so
// that its order is the order in time. Durations are integers in milliseconds and end in _ms; the ages in the view
// are seconds with three decimals and end in _s. NULL means that there is none, never "empty".
//
// # Identifiers
//
// Task types, own_signs, queue ids and servers compare and sort by their bytes on every database, because the
// order of queue ids is the order in which rows are locked. MySQL's utf8mb4_bin takes 'a' and 'a ' for equal: an
// identifier must not end in a space, which is for the caller to check, as are the lengths: task_type 100
// characters, own_sign 50, queue_id, servers and triggers 150, item_key and run_key 255, run_id 36.
package schema
