package center

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/lib/pq"

	"github.com/dutyrota/rota/schema"
)

var postgres = &dialect{
	name:     schema.Postgres,
	now:      "clock_timestamp()", // now() would be the start of the transaction
	ago:      func(ms string) string { return "clock_timestamp() - " + ms + " * INTERVAL '1 millisecond'" },
	numbered: true,
	// An array, by which the index is used: of a join with the elements PostgreSQL thinks that there are 100, and reads
	// all queues of a large roster for one of them.
	listed: ` FROM schedule_queue AS q WHERE q.queue_id = ANY(ARRAY(SELECT jsonb_array_elements_text(CAST(? AS jsonb))))
		AND q.task_type = ? AND q.own_sign = ?`,
	share:         " FOR SHARE OF q",
	skipLocked:    " FOR UPDATE OF q SKIP LOCKED",
	listedServers: ` FROM schedule_server AS s WHERE s.uuid = ANY(ARRAY(SELECT jsonb_array_elements_text(CAST(? AS jsonb))))`,
	lockServers:   " FOR UPDATE OF s",
	deleteServers: `DELETE FROM schedule_server AS s WHERE s.uuid = ANY(ARRAY(SELECT jsonb_array_elements_text(CAST(? AS jsonb))))`,
	upsertItem: ` ON CONFLICT (task_type, own_sign, item_key) DO UPDATE SET queue_id = excluded.queue_id, state = excluded.state,
		attempts = excluded.attempts, last_error = excluded.last_error, next_attempt_at = excluded.next_attempt_at`,
	limited:     " AND " + limitPostgres,
	inLine:      " AND CASE WHEN " + limitPostgres + " THEN pg_advisory_xact_lock(" + linePostgres + ") IS NOT NULL END",
	firstInLine: " AND CASE WHEN " + limitPostgres + " THEN pg_try_advisory_xact_lock(" + linePostgres + ") END",
	// The LIMIT tells how many rows there are at the most, for the same reason: by index for a few, by hash for many.
	change: `UPDATE schedule_queue AS q SET cur_server = v.cur, req_server = v.req, epoch = q.epoch + v.bump,
		cur_since = CASE WHEN v.bump = 0 THEN q.cur_since WHEN v.cur IS NULL THEN NULL ELSE {now} END,
		req_since = CASE WHEN v.req IS NULL THEN NULL WHEN q.req_server = v.req THEN q.req_since ELSE {now} END,
		plan_version = v.plan, gmt_modified = {now}
		FROM (SELECT * FROM jsonb_to_recordset(CAST(? AS jsonb))
			AS v(id text, old_cur text, old_epoch bigint, cur text, req text, bump bigint, plan bigint) LIMIT {rows}) AS v
		WHERE q.task_type = ? AND q.own_sign = ? AND q.queue_id = v.id
		AND q.epoch = v.old_epoch AND q.cur_server IS NOT DISTINCT FROM v.old_cur`,
	time:     utc,
	classify: classifyPostgres,
}

// limitPostgres is a condition that is true, and sets what MySQL's connections have as settings. PgBouncer would refuse them
// there; for a transaction they cost nothing. A host that vanishes without a word, or is stopped, would keep the lock row
// until TCP notices, in hours. And who waits for a lock for longer than a second gives up and keeps the connection:
// otherwise ours would end the connection (ioTimeout), of which a server that waits for a lock takes no notice, and each
// try would leave a session.
const limitPostgres = `set_config('idle_in_transaction_session_timeout', '10000', true) || set_config('lock_timeout', '1000', true) <> ''`

// linePostgres is the key of the line for a lock row: of a text that is bound, and of the table.
const linePostgres = "hashtextextended(?, CAST(tableoid AS bigint))"

func classifyPostgres(err error) class {
	var e *pq.Error
	if !errors.As(err, &e) {
		return classOther
	}
	if unpreparedPostgres(err) {
		return classRollback
	}
	switch e.Code {
	case "40001", "40P01", "55P03": // serialization, deadlock, lock not available
		return classRollback
	case "57014": // cancelled, or took too long
		return classInterrupted
	case "53300": // too many connections
		return classBroken
	case "57P01", "57P02", "57P03": // the server goes down or comes up
		return classBroken
	case "42P01", "3F000": // no such table or schema
		return classNoTable
	case "23505":
		return classDuplicate
	case "25006":
		return classReadOnly
	}
	if strings.HasPrefix(string(e.Code), "08") {
		return classBroken
	}
	return classRefused
}

// postgresConnector forces what correctness needs on the user's URL.
func postgresConnector(raw string, role role) (driver.Connector, error) {
	cfg, err := pq.NewConfig(raw)
	if err != nil {
		return nil, err
	}
	// Without it, lib/pq prepares and executes in two round trips, and PgBouncer in transaction
	// mode sends them to different servers: another statement's rows come back.
	cfg.BinaryParameters = true
	if cfg.ApplicationName == "" {
		cfg.FallbackApplicationName = "rota"
	}
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = ioTimeout
	}
	connector, err := pq.NewConnectorConfig(cfg)
	if err != nil {
		return nil, err
	}
	connector.Dialer(dialer{strict: role.brief()})
	if !role.brief() {
		return connector, nil
	}
	return preparingConnector{connector, direct, unpreparedPostgres, 100}, nil
}

// unpreparedPostgres: there is no such statement any more (DISCARD ALL), or a table has changed so that its rows would.
func unpreparedPostgres(err error) bool {
	var e *pq.Error
	return errors.As(err, &e) && (e.Code == "26000" || e.Code == "0A000" && e.Routine == "RevalidateCachedQuery")
}

// direct reports that nothing stands between, and so that statements may be prepared: behind PgBouncer in transaction
// mode the next statement may meet another server's session, and lib/pq's names are the same on all connections, so
// that another statement's rows would come back. It is so if the server sees the same two ends of the connection as we
// do: a pooler's own connection has other ends, and no two connections have both in common. Of a Unix socket nobody can
// tell, nor where addresses are translated; there it is false, and so it is if the question fails, for the next
// statement tells of that.
func direct(ctx context.Context, c driverConn, dialed net.Conn) bool {
	if dialed == nil {
		return false
	}
	rows, err := c.QueryContext(ctx, `SELECT host(inet_client_addr()) || ' ' || inet_client_port() || ' ' || host(inet_server_addr()) || ' ' || inet_server_port()`, nil)
	if err != nil {
		return false
	}
	row := make([]driver.Value, 1)
	if err := errors.Join(rows.Next(row), rows.Close()); err != nil {
		return false
	}
	return row[0] != nil && fmt.Sprintf("%s", row[0]) == end(dialed.LocalAddr())+" "+end(dialed.RemoteAddr())
}

// end is one of a connection, as PostgreSQL writes it.
func end(a net.Addr) string {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return ""
	}
	return fmt.Sprint(tcp.AddrPort().Addr().Unmap().WithZone(""), " ", tcp.Port)
}

// withSSLMode writes the sslmode that the URL leaves open: lib/pq's own default refuses a server
// without TLS, which is what runs on one's own machine.
func withSSLMode(u *url.URL) {
	q := u.Query()
	if q.Has("sslmode") {
		return
	}
	mode := "require"
	if loopback(u) {
		mode = "disable"
	}
	q.Set("sslmode", mode)
	u.RawQuery = q.Encode()
}

// ioTimeout bounds a read or a write of the roster's own connections. It is the only thing that
// ends a statement of lib/pq when the network swallows packets (its issue 620).
const ioTimeout = 3 * time.Second

// cancelTimeout bounds the same for a request to cancel a statement.
const cancelTimeout = 300 * time.Millisecond

// dialer opens connections that notice a dead network: all by keep-alive, the roster's own
// (strict) by a deadline for each read and write. Dealers and migrations may run statements of any length.
type dialer struct{ strict bool }

func (d dialer) Dial(network, address string) (net.Conn, error) {
	return d.DialTimeout(network, address, ioTimeout)
}

func (d dialer) DialTimeout(network, address string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return d.DialContext(ctx, network, address)
}

func (d dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	timeout := ioTimeout
	if d.strict && !telling(ctx) { // a request to cancel, for whose answer lib/pq waits if the statement was prepared
		timeout = cancelTimeout
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	keepAlive := net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 5 * time.Second, Count: 3}
	conn, err := (&net.Dialer{KeepAliveConfig: keepAlive}).DialContext(ctx, network, address)
	tell(ctx, conn)
	if err != nil || !d.strict {
		return conn, err
	}
	return strictConn{conn, timeout}, nil
}

// strictConn fails a read or a write that takes longer than its timeout.
type strictConn struct {
	net.Conn
	timeout time.Duration
}

func (c strictConn) Read(p []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.timeout)); err != nil {
		return 0, fmt.Errorf("set the read deadline: %w", err)
	}
	return c.Conn.Read(p)
}

func (c strictConn) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(c.timeout)); err != nil {
		return 0, fmt.Errorf("set the write deadline: %w", err)
	}
	return c.Conn.Write(p)
}
