// Package demo is "rota demo": several `rota worker` processes share one table of orders while one more joins and
// one is killed, and SELECTs prove at the end that nothing was lost or done twice.
//
// The demo uses no back door. It starts the program that a user would start, with a rota.yaml that a user could
// have written, and from then on only signals the processes and reads tables: schedule_assignment and
// schedule_event for the view, these, schedule_server_history and orders for the proof. [Run] tells the story,
// step by step.
//
// # Where it works
//
// Without a URL in a SQLite file in its folder. On PostgreSQL in a schema, on MySQL in a database, that it creates
// under a random name and drops at the end, also when it failed or was interrupted. So it cannot touch a table of
// the user's, not even a roster that is there already, it needs no list of what to remove, and one that was killed
// leaves one thing to drop, which its first line names. Tables beside the user's own were the alternative: they
// would have to be told apart by name. The price is the right to create a schema or database, which an
// application's user may not have (the refusal says so), and that a PgBouncer in between has to let search_path pass.
//
// # What it does not promise
//
// The work is slowed down on purpose, so that there is something to see: it measures nothing. Ownership, effects
// and the number of moves must be right on any machine. How long the take-over lasted depends on the machine too,
// hence there is a warning above the promise and a failure only at three times as much. A machine that stops a
// worker for longer than judge_dead_interval makes the others bury a worker that lives; then the demo fails, and
// says why.
//
// # Libraries
//
// jedib0t/go-pretty gives colours, widths that know escape sequences, and tables, and leaves the screen to its
// caller; the rest of a view that is written anew five times a second is "cursor home, lines, erase the rest".
// bubbletea would bring an event loop, raw mode and key bindings for a view that takes no input, and has to
// restore the terminal of whoever kills it; schollz/progressbar draws one line, and this is a screen.
package demo
