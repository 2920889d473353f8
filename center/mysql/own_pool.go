package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"time"

	"github.com/dutyrota/rota/internal/sqldb"
)

// checkTx asks a transaction of a pool that the program opened itself (F9). It does not ask for clientFoundRows: the
// statements of a fence change each row that they match.
func checkTx(ctx context.Context, tx *sql.Tx, idle time.Duration) (sqldb.PoolFinding, error) {
	values, err := show(ctx, tx, "VARIABLES", "character_set_client", "character_set_connection", wsrepOn, syncVariable,
		idleVariable, "wait_timeout")
	if err != nil {
		return sqldb.PoolFinding{}, err
	}
	return sqldb.PoolFinding{Unfit: unfit(values), Warning: idleWarning(values, idle)}, nil
}

// unfit names the variable of a session in which the fence does not hold, with its value and the rule.
func unfit(values map[string]string) string {
	for _, name := range []string{"character_set_client", "character_set_connection"} {
		if values[name] != "utf8mb4" {
			return fmt.Sprintf("%s (%s) must be utf8mb4: names would be read as others, and a parameter could end its quotes",
				name, values[name])
		}
	}
	wait, _ := strconv.Atoi(values[syncVariable]) // 0 if the server does not know the variable
	if isOn(values[wsrepOn]) && wait&3 != 3 {
		return fmt.Sprintf("%s (%d) must be %s: a select on a node that lags returns items that are done", syncVariable, wait,
			syncWait)
	}
	return ""
}

// idleVariable limits idle transactions on MariaDB. MySQL has only a limit for idle connections (F6).
const idleVariable = "idle_transaction_timeout"

// idleWarning says that the server lets transactions be idle for longer than the limit of the roster, if it does.
func idleWarning(values map[string]string, limit time.Duration) string {
	name, value := "wait_timeout", values["wait_timeout"]
	if own, known := values[idleVariable]; known {
		name = idleVariable
		if own != "0" { // no limit but that for connections
			value = own
		}
	}
	seconds, err := strconv.Atoi(value)
	if err != nil || limit <= 0 || time.Duration(seconds)*time.Second < limit+time.Second {
		return ""
	}
	return fmt.Sprintf("its transactions may be idle for longer than %s (%s = %s): for as long, "+
		"a host that vanishes inside InTx keeps its queues",
		limit, name, values[name])
}
