// Package sqldealer is the dealer behind "dealer: sql:" in rota.yaml: it
// selects rows with one statement and executes another for them.
//
// Values are bound, never concatenated. A statement is parsed once, into text with the database's own parameter marks
// and the names of the bound values. text/template and sqlx's named parameters were rejected: the first concatenates,
// the second reads the colon of a cast as the start of a name. The parser skips strings and comments, because a
// {{name}} in them cannot be bound; syntax.go has what differs between databases.
//
// Check asks the database whether it accepts the statements, before the worker joins the roster. FindScan asks it for
// the plan of the select, which says whether an index serves it. It does not say which index is missing: a database
// names only the indexes that exist, and what the text of a select needs could only be guessed.
//
// Execute runs in center.InTx, which checks the fence first. The writes of a stale owner are rolled back. Each row
// takes effect exactly once if the statement changes what select filters on, or if select reads from {{cursor}}.
//
// {{slot}}, {{params.NAME}}, {{run_key}} and the other fields of processor.RunFields are those of the run that sweeps
// the queue. New refuses a file that uses one without mode RUN. If the database says CONTINUOUS nevertheless, it is
// NULL. A run that lacks what a statement uses fails: with NULL it would find no rows and succeed.
//
// {{after}} lets the select go on behind failed rows, in the order of the key. A select without it returns at most ten
// times fetch_number rows. If all of them have failed, they hide all others. It has a start value rather than a
// condition that is left out at the start: a second form of the statement would have another plan. A row whose key
// has NULL fails for good when it is executed, because no statement finds it by its key. The rows beside it go on.
//
// A key may have several columns. {{keys}} is then a list of row values. All databases find them by an index. To go on
// behind a key, PostgreSQL and SQLite compare row values by an index, and MySQL does not. There, New refuses the row
// value and names the condition to write. The program does not rewrite the statement: errors of the database would then
// be about a text that the user has not written.
//
// discard changes a row that has failed for good, in a fenced transaction. The roster has the record of the death
// before. A crash in between repeats the statement, because the next owner discards the dead rows that it selects.
//
// {{cursor}} passes rows for good, so a row that is committed late, behind it, would be lost. Three forms prevent this.
// {{horizon}} is the oldest transaction of PostgreSQL that still writes, read before the select takes its snapshot; the
// first column of the cursor must be of type xid8. A filter on the column xmin instead is not safe: its order is not
// that of the cursor. With cursor_lag, {{horizon}} is the newest row that this process has seen a lag ago. The
// alternative, a column with a time compared with the database's clock, needs such a column, trusts the clocks of all
// writers, and loses rows when a clock is set back. With commits_in_order the user promises that there are no such
// rows. In mode RUN each run has a cursor of its own, so that nothing is lost between runs. The dealer checks each
// page: rising, unique, below the horizon. To see whether the last cursor is unique, a select asks for one row more
// than it returns.
//
// A key, a position and a cursor are stored as text: numbers and texts as they are, bytes as \x and hexadecimal digits,
// a text that is empty or starts with a backslash behind \s. The texts of a key of several columns are joined by
// slashes, and a slash in one of them is %2F. Types whose text is not exact are refused (syntax.go).
//
// With a program (package program) Execute sends it the rows. The statement of execute, if there is one, then marks the
// rows that the program has done. So a program that changes nothing in the database, such as a sender of mail, needs no
// access to it, and what it has done is repeated only if the worker ends between the reply and the commit. A program
// that changes the database itself gets the fencing statement with each batch. The rows of a cursor are all done, or
// all repeated: the cursor cannot pass a row that has failed.
//
// With execute_each the rows of one call share a transaction. If one row fails,
// all are rolled back, and with a key they are then executed one by one.
package sqldealer
