// Package sim plays random histories of a roster in simulated time, and checks what must hold.
//
// A history is a few worker processes, their tasks, and the steps that disturb them: processes that are killed, stopped
// and started again, links that lose requests and replies, a clock that is set, a database that falls back to a backup,
// outages of what the tasks call, and whatever an operator can do (package verbs). Each history has a few of these
// only, so that a few meet often. The processes are real: each is a [manager.Manager] with a Center and connections of
// its own, and all use one database file. Time is that of a bubble of testing/synctest, so a minute of a history takes
// a fraction of a second.
//
// # The world
//
// The only way of a process to a database is a link, which stands between a pool and its connections (sqldb.Database
// has the seam). A link delays a statement, loses it or its reply, lets the database roll it back, and waits while its
// process is stopped. Nothing passes the link of a process that was killed. A COMMIT that a link delays may take effect
// long after its process has given it up.
//
// A file stands in for a server. It lets in one writer at a time, so that SQLite never waits in real time. A writer
// that is silent for too long is thrown out, as a server ends the transactions of clients that are gone. The clock of
// the file is that of the bubble, and a step can set it. A step can also put an older state of the file in its place.
//
// # What must hold
//
// The oracle shares no code with the product. It reads the tables and what the tasks have recorded: see oracle_test.go.
// Some rules hold at each moment, such as that an epoch has one owner. The others hold at the end: the faults are over
// then, the oracle lifts all pauses, and everything must come to rest within a bound.
//
// # Histories are texts
//
// A history is drawn from a seed and is a text from then on, which a person reads and [TestScenarios] plays again:
// testdata has the histories that are kept. A seed fixes the text, and not the order in which goroutines run. So a
// history may fail in one play and not in the next.
//
//	make sim MINUTES=10 SEED=1   play as many histories as there is time for
//	go test ./internal/sim -run TestScenarios/NAME -v
package sim
