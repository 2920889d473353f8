package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/dutyrota/rota/internal/sqldb"
)

func probe(ctx context.Context, db *sql.DB) (s sqldb.Server, err error) {
	var version string
	var readOnly int
	if err := db.QueryRowContext(ctx, "SELECT VERSION(), @@global.read_only").Scan(&version, &readOnly); err != nil {
		return s, fmt.Errorf("ask for the version: %w", err)
	}
	if err := checkVersion(version); err != nil {
		return s, err
	}
	if readOnly != 0 {
		return s, sqldb.TakesNoWrites("this server is read-only (read_only = 1: a replica?): connect to the primary")
	}
	if err := checkBinaryLog(ctx, db); err != nil {
		return s, err
	}
	return replication(ctx, db)
}

var versionStart = regexp.MustCompile(`^(\d+)\.(\d+)`)

// checkVersion returns an error if version, the result of VERSION(), is too old.
func checkVersion(version string) error {
	kind, least := "MySQL", [2]int{8, 0}
	if strings.Contains(version, "MariaDB") {
		kind, least = "MariaDB", [2]int{10, 6}
	}
	m := versionStart.FindStringSubmatch(version)
	if m == nil {
		return fmt.Errorf("%s %q: cannot read the version", kind, version)
	}
	major, errMajor := strconv.Atoi(m[1])
	minor, errMinor := strconv.Atoi(m[2])
	if err := errors.Join(errMajor, errMinor); err != nil {
		return fmt.Errorf("%s %q: cannot read the version: %w", kind, version, err)
	}
	if major < least[0] || major == least[0] && minor < least[1] {
		return fmt.Errorf("%s %s is too old: %d.%d or newer is needed", kind, version, least[0], least[1])
	}
	return nil
}

// checkTables returns an error for a table whose engine has no transactions: the fence would guard nothing.
func checkTables(ctx context.Context, db *sql.DB) error {
	var table, engine string
	err := db.QueryRowContext(ctx, `SELECT table_name, engine FROM information_schema.tables
		WHERE table_schema = DATABASE() AND table_name LIKE 'schedule\_%' AND table_type = 'BASE TABLE' AND engine <> 'InnoDB'
		ORDER BY table_name LIMIT 1`).Scan(&table, &engine)
	if sqldb.NoRows(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("ask for the engines: %w", err)
	}
	return fmt.Errorf("table %s has the engine %s, which has no transactions: ALTER TABLE %s ENGINE = InnoDB", table,
		engine, table)
}

// notes returns what an operator should know. The isolation level is that of dealers, the server's default.
func notes(ctx context.Context, db *sql.DB) ([]sqldb.Note, error) {
	var isolation string
	if err := db.QueryRowContext(ctx, "SELECT @@global."+isolationVariable(ctx, db)).Scan(&isolation); err != nil {
		return nil, fmt.Errorf("ask for the isolation: %w", err)
	}
	isolation = strings.ReplaceAll(isolation, "-", " ")
	return []sqldb.Note{
		sqldb.IsolationNote(isolation, isolation == "REPEATABLE READ" || isolation == "READ COMMITTED"),
		{Kind: "DATABASE", OK: true, Finding: "all tables have the engine InnoDB"}, // checkTables refuses others
	}, nil
}

// isolationVariable returns the name of the variable that holds the isolation level. MySQL 8 no longer has the old
// name, and MariaDB before 11.1 does not have the new one.
func isolationVariable(ctx context.Context, db *sql.DB) string {
	var name, value string
	if err := db.QueryRowContext(ctx, "SHOW VARIABLES LIKE 'transaction_isolation'").Scan(&name, &value); err == nil {
		return "transaction_isolation"
	}
	return "tx_isolation"
}
