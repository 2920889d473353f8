package mysql

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
)

// readCommitted is a connector whose sessions read at READ COMMITTED. The statement has no variable, because the
// variable has another name on MySQL 8 than on MariaDB before 11.1.
type readCommitted struct{ sqldriver.Connector }

// Connect implements driver.Connector.
func (r readCommitted) Connect(ctx context.Context) (sqldriver.Conn, error) {
	conn, err := r.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	session := conn.(sqldriver.ExecerContext) // the driver's connections implement it
	if _, err := session.ExecContext(ctx, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", nil); err != nil {
		return nil, errors.Join(fmt.Errorf("set the isolation level: %w", err), conn.Close())
	}
	return conn, nil
}

// checkBinaryLog returns an error for a server that would refuse the roster's transactions (error 1665): it writes
// statements to its binary log, and what a statement does at READ COMMITTED depends on other transactions.
func checkBinaryLog(ctx context.Context, db *sql.DB) error {
	values, err := show(ctx, db, "VARIABLES", "log_bin", "binlog_format")
	if err != nil {
		return fmt.Errorf("ask for the binary log: %w", err)
	}
	return refuseStatements(values["log_bin"], values["binlog_format"])
}

func refuseStatements(logBin, format string) error {
	if isOn(logBin) && format == "STATEMENT" {
		return errors.New("binlog_format is STATEMENT, with which the server refuses transactions that are READ COMMITTED: " +
			"set it to ROW or MIXED")
	}
	return nil
}
