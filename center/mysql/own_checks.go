package mysql

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"

	"github.com/dutyrota/rota/internal/sqldb"
)

// checkDriver refuses a driver whose errors or parameters are not as the roster needs them.
func checkDriver(ctx context.Context, db *sql.DB) error {
	var text string
	err := db.QueryRowContext(ctx, "SELECT no_such_column FROM (SELECT 1 AS n) AS t").Scan(&text)
	if !numbered(err, unknownColumn) {
		return fmt.Errorf("an error of the connections of %T is not an error of go-sql-driver/mysql (%T): "+
			"the roster could not tell a deadlock from a lost connection", db.Driver(), err)
	}
	if err := db.QueryRowContext(ctx, "SELECT CAST(? AS CHAR)", sample).Scan(&text); err != nil {
		return fmt.Errorf("ask for a time: %w", err)
	}
	if text != sampleText {
		return fmt.Errorf("a time that the connection sends (%s) must be %s (timeTruncate): times have microseconds", text,
			sampleText)
	}
	values, err := show(ctx, db, "VARIABLES", wsrepOn, "wsrep_provider")
	if err != nil {
		return fmt.Errorf("ask for the replication: %w", err)
	}
	if provider := values["wsrep_provider"]; provider != "" && provider != "none" && !isOn(values[wsrepOn]) {
		return fmt.Errorf("wsrep_on of the connection (%s) must be ON: other nodes would lack what is written",
			values[wsrepOn])
	}
	return nil
}

// checkFoundRows refuses connections whose affected rows are the changed rows. No variable shows the option: an
// UPDATE of a new row to the values that it has counts the row, or does not. The row is never committed. A user who
// may not write sends no compare-and-set.
func checkFoundRows(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer tx.Rollback() // its error does not matter: the connection is then lost, and the row with it
	name := "?" + rand.Text()
	_, err = tx.ExecContext(ctx, "INSERT INTO schedule_task_running (task_type) VALUES (?)", name)
	if denied(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("ask whether affected rows are the matched rows: %w", err)
	}
	n, err := sqldb.Affected(tx.ExecContext(ctx, "UPDATE schedule_task_running SET version = version WHERE task_type = ?",
		name))
	if err != nil {
		return fmt.Errorf("ask whether affected rows are the matched rows: %w", err)
	}
	if n != 1 {
		return errors.New("clientFoundRows of the connection (false) must be true: a compare-and-set counts the matched " +
			"rows, " +
			"not the changed ones")
	}
	return nil
}
