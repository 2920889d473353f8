package sim

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/dutyrota/rota/internal/sqldb"
)

// link is the way of one process to the databases.
type link struct {
	mu      sync.Mutex
	rng     *rand.Rand
	trouble trouble
	dead    bool
	stopped chan struct{} // closed when the process goes on; nil while it runs
	killed  chan struct{} // closed when the process is killed

	passed sent

	// The oracle's: its connections notice at once that the database has closed them, and wait long for their turn.
	patient bool
}

// trouble is what a link does with statements. The figures are parts of all statements.
type trouble struct {
	delay              time.Duration // the longest
	lose, reply, abort float64       // the request is lost; the reply is; the database rolls the transaction back
	cut                bool          // nothing passes
}

// sent counts the statements that have passed: all, those of heartbeats, and the other ones to the roster that are not
// of dealers. Of these, statistics have what people read about a server.
type sent struct{ all, beats, store, statistics int }

func (l *link) sent() sent {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.passed
}

// countStatistics counts a statement that may be one of statistics.
func (l *link) countStatistics(query string) {
	if strings.Contains(query, "new_fetch_item_count") {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.passed.statistics++
	}
}

// count counts a statement of a connection.
func (l *link) count(role sqldb.Role) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.passed.all++
	switch role {
	case sqldb.RoleHeartbeat:
		l.passed.beats++
	case sqldb.RoleStore:
		l.passed.store++
	}
}

func newLink(seed uint64) *link {
	return &link{rng: rand.New(rand.NewPCG(seed, 1)), killed: make(chan struct{})}
}

// kill ends the process: nothing of it reaches a database any more.
func (l *link) kill() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.dead {
		l.dead = true
		close(l.killed)
	}
}

// stop makes the process stand still until goOn.
func (l *link) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped == nil {
		l.stopped = make(chan struct{})
	}
}

func (l *link) goOn() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped != nil {
		close(l.stopped)
		l.stopped = nil
	}
}

func (l *link) set(t trouble) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.trouble = t
}

// stands waits while the process is stopped. Code of the process calls it where it would use the processor.
func (l *link) stands(ctx context.Context) error {
	for {
		l.mu.Lock()
		stopped, dead := l.stopped, l.dead
		l.mu.Unlock()
		switch {
		case dead:
			return errKilled
		case stopped == nil:
			return nil
		}
		select {
		case <-stopped:
		case <-l.killed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

var errKilled = errors.New("the process was killed")

// reset is the error of a connection that is lost.
func reset(op string) error {
	return &net.OpError{Op: op, Net: "sim", Err: os.NewSyscallError(op, syscall.ECONNRESET)}
}

// fate is what becomes of a statement.
type fate int

const (
	arrives fate = iota
	losesRequest
	losesReply
	aborts
	late // it arrives after its sender has given it up
)

// pass waits as the link does for a statement, and draws its fate.
func (l *link) pass(ctx context.Context, commit bool) (fate, time.Duration, error) {
	if err := l.stands(ctx); err != nil {
		return losesRequest, 0, err
	}
	l.mu.Lock()
	t, fate := l.trouble, arrives
	delay, chance := time.Duration(0), l.rng.Float64()
	if t.delay > 0 {
		delay = time.Duration(l.rng.Int64N(int64(t.delay)))
	}
	switch {
	case t.cut:
		fate, delay = losesRequest, sqldb.IOTimeout
	case chance < t.lose:
		fate = losesRequest
		if commit && l.rng.IntN(2) == 0 {
			fate = late
		}
	case chance < t.lose+t.reply:
		fate = losesReply
	case chance < t.lose+t.reply+t.abort:
		fate = aborts
	}
	l.mu.Unlock()
	if delay > 0 {
		select {
		case <-time.After(delay):
		case <-l.killed:
			return losesRequest, 0, errKilled
		case <-ctx.Done():
			if commit {
				return late, delay, nil
			}
			return losesRequest, 0, ctx.Err()
		}
	}
	return fate, delay, l.stands(ctx)
}

// connector makes the connections of a pool of a process to a file.
type connector struct {
	driver.Connector
	file *file
	link *link
	role sqldb.Role
}

// Connect implements driver.Connector.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	switch fate, _, err := c.link.pass(ctx, false); {
	case err != nil:
		return nil, err
	case fate != arrives:
		return nil, reset("dial")
	}
	c.file.mu.Lock()
	defer c.file.mu.Unlock()
	if c.file.down && !c.link.patient {
		return nil, reset("dial")
	}
	made, err := c.Connector.Connect(context.WithoutCancel(ctx))
	if err != nil {
		return nil, err
	}
	n := &conn{real: made.(sqldb.OwnConn), file: c.file, link: c.link, role: c.role}
	c.file.conns[n] = true
	return n, nil
}

// conn is a connection over a link.
type conn struct {
	real sqldb.OwnConn
	file *file
	link *link
	role sqldb.Role

	lost    bool // for the process, which alone reads and writes it
	aborted bool // the database has rolled the transaction back, and the process has not ended it yet

	// The rest is under the lock of the file.
	broken  bool // the database has closed it
	pending bool // a COMMIT is on its way that the process has given up
	tx      driver.Tx
}

// silence is for how long the connection may say nothing in a transaction, and patience how long it waits for the turn.
func (c *conn) silence() time.Duration {
	if c.role == sqldb.RoleDealers {
		return dealerSilence
	}
	return storeSilence
}

func (c *conn) patience() time.Duration {
	if c.link.patient {
		return time.Hour
	}
	if c.role == sqldb.RoleDealers {
		return 2 * dealerSilence
	}
	return 2 * time.Second
}

// run sends a statement over the link. do runs it, with the lock of the file.
func (c *conn) run(ctx context.Context, op string, write bool, do func() error) error {
	switch {
	case c.lost:
		return driver.ErrBadConn
	case c.aborted:
		return errBusy
	}
	c.link.count(c.role)
	fate, _, err := c.link.pass(ctx, false)
	switch {
	case err != nil || fate == losesRequest:
		c.lose()
		return errors.Join(err, reset(op))
	case fate == aborts:
		return c.abort()
	}
	if write && c.tx == nil {
		if err := c.file.take(ctx, c); err != nil {
			return err
		}
	}
	err = c.locked(func() error {
		err := do()
		if c.tx == nil {
			c.file.giveLocked(c)
		}
		return err
	})
	if fate == losesReply {
		c.lose()
		return reset(op)
	}
	if err == nil && ctx.Err() != nil { // the driver would have ended the statement
		err = ctx.Err()
	}
	return err
}

// locked runs do on a connection that the database has not ended.
func (c *conn) locked(do func() error) error {
	c.file.mu.Lock()
	defer c.file.mu.Unlock()
	if c.broken {
		c.lost = true
		c.file.giveLocked(c) // it may have got the turn since
		return reset("read")
	}
	err := do()
	if c.file.writer == c {
		c.file.heard = time.Now()
	}
	return err
}

// endLocked ends the transaction, if there is one.
func (c *conn) endLocked(end func(driver.Tx) error) error {
	if c.tx == nil || c.broken {
		return nil
	}
	err := end(c.tx)
	c.tx = nil
	c.file.giveLocked(c)
	return err
}

// abort rolls the transaction back, if there is one, as the database does with one side of a deadlock.
func (c *conn) abort() error {
	c.file.mu.Lock()
	defer c.file.mu.Unlock()
	c.aborted = c.tx != nil
	return errors.Join(c.endLocked(driver.Tx.Rollback), errBusy)
}

// lose makes the connection useless for its process. The database hears of that, unless nothing passes the link.
func (c *conn) lose() {
	c.lost = true
	c.link.mu.Lock()
	silent := c.link.trouble.cut && !c.link.dead
	c.link.mu.Unlock()
	if silent {
		return
	}
	c.file.mu.Lock()
	defer c.file.mu.Unlock()
	if !c.pending {
		c.file.breakLocked(c)
	}
}

// ExecContext implements driver.ExecerContext.
func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (result driver.Result, err error) {
	c.link.countStatistics(query)
	err = c.run(ctx, "write", !strings.HasPrefix(query, "PRAGMA"), func() (err error) {
		result, err = c.real.ExecContext(context.WithoutCancel(ctx), inWorld(query), args)
		return err
	})
	return result, err
}

// QueryContext implements driver.QueryerContext. It reads all rows at once.
func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	r := &rows{}
	return r, c.run(ctx, "read", false, func() error {
		found, err := c.real.QueryContext(context.WithoutCancel(ctx), inWorld(query), args)
		if err != nil {
			return err
		}
		defer found.Close() //nolint:errcheck // all its rows were read
		r.columns = found.Columns()
		for {
			row := make([]driver.Value, len(r.columns))
			switch err := found.Next(row); {
			case errors.Is(err, io.EOF):
				return nil
			case err != nil:
				return err
			}
			for i, v := range row {
				if b, ok := v.([]byte); ok {
					row[i] = append([]byte{}, b...)
				}
			}
			r.values = append(r.values, row)
		}
	})
}

// inWorld replaces the clock of statements for programs without Rota.
func inWorld(query string) string { return strings.ReplaceAll(query, plainNow, "rota_now()") }

// BeginTx implements driver.ConnBeginTx.
func (c *conn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	err := c.run(ctx, "write", !o.ReadOnly, func() (err error) {
		c.tx, err = c.real.BeginTx(context.WithoutCancel(ctx), o)
		return err
	})
	if err != nil {
		if c.tx != nil && !c.lost { // the context has ended meanwhile: nobody would end the transaction
			c.lose()
		}
		return nil, err
	}
	return tx{c}, nil
}

// tx is a transaction over a link.
type tx struct{ c *conn }

// Commit implements driver.Tx.
func (t tx) Commit() error {
	c := t.c
	if c.lost {
		return driver.ErrBadConn
	}
	if c.aborted {
		c.aborted = false
		return errBusy
	}
	fate, delay, err := c.link.pass(context.Background(), true)
	commit := func() error { return c.locked(func() error { return c.endLocked(driver.Tx.Commit) }) }
	switch {
	case fate == late:
		c.lost = true
		c.file.mu.Lock()
		c.pending = true
		c.file.mu.Unlock()
		go c.arriveLate(delay+5*time.Second, commit)
		return reset("write")
	case err != nil || fate == losesRequest:
		c.lose()
		return errors.Join(err, reset("write"))
	case fate == aborts:
		err := c.abort()
		c.aborted = false
		return err
	}
	err = commit()
	if fate == losesReply {
		c.lose()
		return reset("read")
	}
	return err
}

// arriveLate commits, although the process counts on nothing any more.
func (c *conn) arriveLate(after time.Duration, commit func() error) {
	time.Sleep(after)
	_ = commit()
	c.file.mu.Lock()
	defer c.file.mu.Unlock()
	c.file.breakLocked(c)
}

// Rollback implements driver.Tx.
func (t tx) Rollback() error {
	if t.c.lost {
		return driver.ErrBadConn
	}
	if t.c.aborted {
		t.c.aborted = false
		return nil
	}
	if fate, _, err := t.c.link.pass(context.Background(), false); err != nil || fate == losesRequest {
		t.c.lose()
		return reset("write")
	}
	return t.c.locked(func() error { return t.c.endLocked(driver.Tx.Rollback) })
}

// Close implements driver.Conn.
func (c *conn) Close() error {
	c.lose()
	return nil
}

// breakAll closes all connections of a link, as the system of a process does that has ended.
func (f *file) breakAll(l *link) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.conns {
		if c.link == l && !c.pending {
			f.breakLocked(c)
		}
	}
}

// IsValid implements driver.Validator.
func (c *conn) IsValid() bool { return !c.lost && !c.closedFor() }

// closedFor reports whether the database has closed the connection of a patient link.
func (c *conn) closedFor() bool {
	c.file.mu.Lock()
	defer c.file.mu.Unlock()
	return c.link.patient && c.broken
}

// ResetSession implements driver.SessionResetter.
func (c *conn) ResetSession(context.Context) error {
	if !c.IsValid() {
		return driver.ErrBadConn
	}
	return nil
}

// Ping implements driver.Pinger.
func (c *conn) Ping(ctx context.Context) error {
	return c.run(ctx, "read", false, func() error { return nil })
}

// Prepare implements driver.Conn.
func (c *conn) Prepare(query string) (driver.Stmt, error) {
	return nil, fmt.Errorf("prepare %q: links do not prepare statements", query)
}

// Begin implements driver.Conn.
func (c *conn) Begin() (driver.Tx, error) { return c.BeginTx(context.Background(), driver.TxOptions{}) }

// rows are rows that were read at once.
type rows struct {
	columns []string
	values  [][]driver.Value
}

// Columns implements driver.Rows.
func (r *rows) Columns() []string { return r.columns }

// Close implements driver.Rows.
func (r *rows) Close() error { return nil }

// Next implements driver.Rows.
func (r *rows) Next(into []driver.Value) error {
	if len(r.values) == 0 {
		return io.EOF
	}
	copy(into, r.values[0])
	r.values = r.values[1:]
	return nil
}

// isDead reports whether the process was killed.
func (l *link) isDead() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dead
}

// isStopped reports whether the process stands still.
func (l *link) isStopped() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stopped != nil
}
