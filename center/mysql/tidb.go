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
	"github.com/dutyrota/rota/schema"
)

// tidb is the dialect of TiDB. TiDB has no share locks: the fence locks the rows of its queues for writing, so that the
// batches of a queue run one after the other. It accepts SKIP LOCKED and ignores it. It has no JSON_TABLE, and to look
// up the fields of 2,000 changes in a JSON array took it half a minute.
var tidb = func() *sqldb.Dialect {
	const servers = ` FROM schedule_server AS s WHERE s.uuid IN ({ids})`
	d := *dialect
	d.Name = schema.TiDB
	d.Version = `SELECT CONCAT('TiDB ',
		SUBSTRING_INDEX(SUBSTRING_INDEX(TIDB_VERSION(), '\n', 1), 'Release Version: v', -1))`
	d.Share = " FOR UPDATE"
	d.SkipLocked = " FOR UPDATE NOWAIT"
	d.LockServers = " FOR UPDATE"
	d.QueuesIn = ` FROM {queues} AS q WHERE q.queue_id IN ({ids}) AND q.task_type = ? AND q.own_sign = ?`
	d.ServersIn = servers
	d.DeleteServers = `DELETE s` + servers
	d.Values = `({rows}) AS v`
	d.ChangeQueues = `UPDATE ({changes}) AS v
		STRAIGHT_JOIN schedule_queue AS q ON q.task_type = ? AND q.own_sign = ? AND q.queue_id = v.id
		SET ` + sqldb.SetQueue + `
		WHERE q.epoch = v.old_epoch AND q.cur_server <=> v.old_cur`
	return &d
}()

// lockMode is the variable that says whether transactions of TiDB lock rows when they read and write them.
const lockMode = "tidb_txn_mode"

// tidbSession sets it. No other server reads such a comment.
const tidbSession = " /*T! , " + lockMode + " = 'pessimistic' */"

var tidbVersion = regexp.MustCompile(`^Release Version: v(\d+)\.(\d+)`)

// isTiDB reports whether a server that says this about itself is TiDB.
func isTiDB(version, comment string) bool { return strings.Contains(version+comment, "TiDB") }

// checkTiDB returns an error for a TiDB that is too old, or on which the statements or the tables of the roster would
// mean something else.
func checkTiDB(ctx context.Context, db *sql.DB) error {
	var version, checks, noop string
	err := db.QueryRowContext(ctx, `SELECT TIDB_VERSION(), @@global.tidb_enable_check_constraint,
		@@global.tidb_enable_noop_functions`).Scan(&version, &checks, &noop)
	if err != nil {
		return fmt.Errorf("ask TiDB for its version and its settings: %w", err)
	}
	version, _, _ = strings.Cut(version, "\n")
	m := tidbVersion.FindStringSubmatch(version)
	if m == nil {
		return fmt.Errorf("TiDB %q: cannot read the version", version)
	}
	major, _ := strconv.Atoi(m[1])
	minor, _ := strconv.Atoi(m[2])
	switch {
	case major < 8 || major == 8 && minor < 5:
		return fmt.Errorf("TiDB %s.%s is too old: 8.5 or newer is needed", m[1], m[2])
	case !isOn(checks):
		return errors.New("tidb_enable_check_constraint is OFF, so that the tables would have no CHECK constraints: " +
			"SET GLOBAL tidb_enable_check_constraint = ON")
	case noop != "OFF" && noop != "0":
		return fmt.Errorf("tidb_enable_noop_functions is %s, so that TiDB accepts share locks and ignores them: "+
			"SET GLOBAL tidb_enable_noop_functions = OFF", noop)
	}
	return nil
}
