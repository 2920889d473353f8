// Package demo is "rota demo": several `rota worker` processes settle one table of orders while one joins and one is
// killed. At the end SELECTs prove that each order took effect exactly once.
//
// The demo uses no back door. It starts the program that a user would start, with a rota.yaml that a user could have
// written. From then on it only signals the processes and reads tables. story.go has the scenes in order. It works in a
// SQLite file in its folder, so that it needs no server. In a database of the user's it creates its tables, and drops
// them at the end. It refuses a database that has tables of these names, so that it cannot touch a table of the user.
//
// The demo measures nothing: a pause between selects slows the work down, so that there is something to see. A machine
// that stops a worker for longer than judge_dead_interval makes the others evict a running worker. Then the proof fails
// and says so.
package demo
