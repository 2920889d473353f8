// Package schema holds the tables of the roster for every dialect, and migrates a database to them.
//
// # Migrations
//
// The directories postgres, mysql and sqlite hold the same migrations under the same numbers, as SQL that a person
// can read, review and apply by hand. TiDB has those of mysql, without what it does not understand (dialect.go).
// docs/tables.md describes the result for users that query it. The directory fence holds the two tables of a data
// database, which is apart from the roster (F11): [UpFence] creates them, without versions.
//
// Until the first release there is one migration, 1, and changes of the tables edit it. Each edit raises the edition,
// which the database keeps in schedule_schema_lock.edition: [Up], [Check] and [Status] refuse the databases of an
// earlier edition with [ErrVoid].
//
// From the first release on, migrations are append-only: a released migration is never edited, because databases have
// been made by it. Columns are public: later migrations add columns, and never rename or remove one. There are no down
// migrations: a database that is migrated back loses what newer programs have written. Instead, the previous version of
// the programs works with the new tables, so that a team goes back without touching them. The head of each file names
// the oldest version that does. Programs read it from schedule_schema_lock.oldest_companion, because older programs may
// restart during a rolling upgrade. docs/compatibility.md has the promises, and what a migration must not do while
// workers work.
//
// goose applies the migrations, as a library through its Provider, without its globals and its output. It is small,
// has one version number for all dialects, runs each migration in a transaction where the database can do that, and
// records it in a plain table. Rejected: a runner of our own, which is simple until it has to split statements, and
// tools that need control of the connection, the URL or the command line.
//
// # The lock
//
// Many processes may start at once on an empty database. One of them migrates: the holder of a lease, which is the row
// of schedule_schema_lock. The row names the holder and the moment at which the lease expires by the database's clock.
// One conditional UPDATE acquires the lease, the holder renews it while it works and releases it at the end, and the
// lease of a dead holder expires. The same statements work on every database and need no session. Rejected:
//
//   - Advisory and named locks (pg_advisory_lock, GET_LOCK), and the session locks of goose. They belong to a session,
//     which PgBouncer in transaction mode gives to other clients. Galera does not replicate them. SQLite has none.
//   - A transaction that stays open during the whole migration. MySQL commits it at the first DDL statement, and it
//     needs a second connection, which a handle on SQLite may not have.
//   - The hook of goose for such a lock (WithLocker). goose creates its version table before it asks for the lock, so
//     that processes that start at once race for the table, and it asks while it holds a connection.
//
// A lease does not stop a process that is paused for longer than the lease (SIGSTOP, a paused virtual machine): it
// could continue beside its successor. Each migration therefore renews the lease once more in the transaction that
// records its version, and fails if another process holds it. On MySQL, where DDL commits by itself, the statements may
// still run twice. The second run does nothing: each looks first whether it has been done.
//
// A program that only checks the schema reads the row, too: while a live process holds the lease, a version that is too
// old may be one that this process is about to leave. [Await] waits for it, for a minute.
//
// # Times and durations
//
// Times are UTC with microseconds, whatever the zone of session and server: timestamptz(6) on PostgreSQL,
// DATETIME(6) on MySQL, and on SQLite text of the form "2006-01-02 15:04:05.000000", always with six digits, so
// that the order of the texts is the order of the times. Durations are integers in milliseconds and end in _ms. The
// ages in the view are seconds with three decimals and end in _s. NULL means that there is none, never "empty".
//
// # Identifiers
//
// Task types, own_signs, queue ids and servers compare and sort by their bytes on every database, because the
// order of queue ids is the order in which rows are locked. For utf8mb4_bin on MySQL, 'a' and 'a ' are equal: an
// identifier must not end in a space. The caller checks that, and the lengths: task_type 100 characters, own_sign 50,
// queue_id, servers and triggers 150, item_key and run_key 255, run_id 36.
package schema
