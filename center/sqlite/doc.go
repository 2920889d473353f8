// Package sqlite opens rosters in a SQLite file, which the processes of one host share, or in memory. The driver is
// modernc.org/sqlite, which needs no cgo. It is a package of its own, so that a program links only the driver of the
// database that it uses:
//
//	c, err := center.Open(ctx, sqlite.URL("sqlite:/var/lib/shop/rota.db"), center.Options{})
//
// # What is forced on connections
//
// Write-ahead logging (WAL), and transactions that take the write lock at their start: one that reads first and writes
// later would fail with SQLITE_BUSY_SNAPSHOT at once, however patient its busy_timeout.
//
// Synchronous commits (synchronous=FULL): with NORMAL, a loss of power takes back the last commits in WAL mode (L9).
//
// A statement that waits for the lock does not notice that its context has ended. So the roster's own statements wait
// for 200 ms and are retried in Go. Those of dealers, whose code may not retry, wait for 5 s.
//
// The roster's connections keep the statements prepared that they repeat: to parse and to plan them takes longer than
// to execute them.
//
// SQLite has one lock for all writers: a writer that hangs stops the others.
//
// # Why not
//
// The package does not accept a database/sql connector of the caller: the settings above are part of the file's name
// for the driver. A dealer's own pool of the file needs _txlock=immediate (F9).
package sqlite
