// Package sqldealer is the dealer behind "dealer: sql:" in rota.yaml: it
// selects rows with one statement and settles them with another.
//
// Values are bound, never concatenated. A statement is parsed once, into text
// with the database's own parameter marks and the names of what is bound to
// them. text/template and sqlx's named parameters were rejected: the first
// concatenates, the second takes the colon of a cast for a name.
//
// Execute runs in center.InTx, whose fence comes first. What a stale owner
// writes is rolled back, and as long as the statement changes what select
// filters on, or reads on from {{cursor}}, each row takes effect exactly once.
// {{run_key}} is the key of the run that sweeps the queue, so that results can
// be told apart by it. A file that uses it without mode RUN is refused; where
// the database's row says CONTINUOUS all the same, it is NULL.
// With execute_each the rows of one call share a transaction: one that fails
// takes the others with it, and with a key they are then tried one by one.
package sqldealer
