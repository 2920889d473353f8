package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"

	"github.com/dutyrota/rota/internal/sqldb"
)

// The variables that show that several servers accept writes.
const (
	wsrepOn       = "wsrep_on"
	singlePrimary = "group_replication_single_primary_mode"
)

func isOn(value string) bool { return strings.EqualFold(value, "ON") || value == "1" }

// replication asks how the server shares its data with others.
func replication(ctx context.Context, db *sql.DB) (sqldb.Server, error) {
	values, err := show(ctx, db, "VARIABLES", wsrepOn, singlePrimary)
	if err != nil {
		return sqldb.Server{}, fmt.Errorf("ask for the replication: %w", err)
	}
	return writers(values)
}

// writers returns what the variables say about the servers that accept writes. A server without Galera or Group
// Replication does not know the variables. Group Replication with several primaries has stale reads as Galera has them,
// and a variable of its own against them, with which Rota is not tested: writers refuses it (F8).
func writers(values map[string]string) (s sqldb.Server, err error) {
	if mode, known := values[singlePrimary]; known && !isOn(mode) {
		return s, fmt.Errorf("this server is set to a Group Replication with several primaries (%s = %s), "+
			"in which the fence does not hold: "+
			"switch the group to single-primary mode", singlePrimary, mode)
	}
	return sqldb.Server{WriteFence: isOn(values[wsrepOn])}, nil
}

// node asks the node of Galera behind a connection for its name and for the setting of the session.
func node(ctx context.Context, conn *sql.Conn) (sqldb.Node, error) {
	values, err := show(ctx, conn, "VARIABLES", "wsrep_node_name", syncVariable)
	if err != nil {
		return sqldb.Node{}, fmt.Errorf("ask a node for its name: %w", err)
	}
	status, err := show(ctx, conn, "STATUS", "wsrep_cluster_size")
	if err != nil {
		return sqldb.Node{}, fmt.Errorf("ask a node for the size of its cluster: %w", err)
	}
	size, _ := strconv.Atoi(status["wsrep_cluster_size"]) // 0 if the server has no cluster
	return sqldb.Node{Name: values["wsrep_node_name"], Size: size, SyncWait: values[syncVariable]}, nil
}

// queryer is a pool or a connection.
type queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// show returns the values of variables or of the status. It leaves out names that the server does not know.
func show(ctx context.Context, q queryer, what string, names ...string) (map[string]string, error) {
	rows, err := q.QueryContext(ctx, "SHOW "+what+" WHERE Variable_name IN ("+sqldb.Marks(len(names))+")",
		sqldb.Args(names)...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	values := map[string]string{}
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return nil, err
		}
		values[strings.ToLower(name)] = value
	}
	return values, rows.Err()
}
