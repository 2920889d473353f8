// Package demo is "rota demo": several `rota worker` processes settle one table of orders while one joins and one is
// killed. At the end SELECTs prove that each order took effect exactly once.
//
// The demo uses no back door. It starts the program that a user would start, with a rota.yaml that a user could have
// written. From then on it only signals the processes and reads tables. story.go has the scenes in order.
//
// # The database
//
// Without --db the demo works in a SQLite file in its folder. On a server it creates a schema (MySQL: a database) with
// a random name, and drops it at the end, also after a failure or an interruption. So the demo cannot touch a table of
// the user, and a demo that was killed leaves one thing to drop, which its first line names. Tables beside the
// user's own were the alternative: only their names would tell them apart. The price is the right to create a schema.
// A PgBouncer in between must let search_path pass.
//
// # Not promised
//
// The demo measures nothing: a pause between selects slows the work down, so that there is something to see. A machine
// that stops a worker for longer than judge_dead_interval makes the others evict a running worker. Then the proof fails
// and says so.
package demo
