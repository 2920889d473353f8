// Package rotatest runs task types in tests: real workers on a roster of the test's own, in the test's process.
//
//	func TestSettle(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			r := rotatest.Open(t, rotatest.Options{})
//			... // create the tables of the dealer in r.Center().DB()
//			r.Work(manager.Serve("settle", settle{r.Center().DB()}, manager.Settings{Queues: 4}))
//			... // look at the tables
//		})
//	}
//
// The database is SQLite in memory, unless Options say otherwise. In a bubble of testing/synctest time is fake: a pause
// between two attempts of an item, or the time until a dead worker's queues are taken over, takes no time, so that such
// a test ends in milliseconds. Without a bubble, or on a database server, the same test takes the real time.
//
// What happens in the database is what happens in production: the workers join, are assigned queues, execute with the
// fence, record failed items and leave. Not simulated are several hosts, a slow network and a database that fails.
// The items of a dealer may be anywhere: only the roster needs the database.
package rotatest
