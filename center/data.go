package center

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/schema"
)

// Data is a database apart from the roster's that holds the items of queues (F11). The setting Database says which
// queues: a task type may have its items in one database, or in many of any supported kind. The fence is there, too:
// before the first select of a queue under an epoch, its owner raises the epoch in the table rota_fence, and a
// transaction that begins with Data.Fence commits only while that row has the epoch of the batch. docs/data.md has the
// whole of it.
//
// While the database cannot be reached, the queues whose items it holds are not selected, and all others go on. All
// methods may be called concurrently.
type Data struct {
	c    *Center
	name string
	db   *sqldb.DB

	opening chan struct{} // has a value while a call asks the server what it is
	opened  atomic.Bool   // the server has answered: the dialect does not change any more
	checked atomic.Bool   // its tables and its id are as they should be

	mu      sync.Mutex
	entered map[dataQueue]queueOwner // under which epochs queues were raised
	waits   map[dataQueue]DataWait   // for transactions of earlier epochs
	refused map[string]DataProblem   // by task type: why it refuses the queues of one task type alone
	problem DataProblem              // why the database cannot be used
	retryAt time.Time                // when a call may try again
	trying  bool                     // a call tries again
}

type dataQueue struct{ taskType, id string }

type queueOwner struct {
	server string
	epoch  int64
	items  roster.Items
}

// DataProblem says why a data database cannot be used for a task type. It is zero if it can.
type DataProblem struct {
	Since time.Time // by the local clock
	Err   error
}

// DataWait is a queue that cannot be selected yet, because fenced transactions are open: those of earlier owners in its
// data database (F11), which end by themselves within Options.IdleTxTimeout after their last statement, or one of its
// owner whose COMMIT got no reply (F5).
type DataWait struct {
	TaskType, Queue string
	Since           time.Time // by the local clock
}

const (
	// dataRetry is the shortest pause between two attempts to use a database that cannot be used. A pause is as long as
	// the attempt before it, which an executor has waited for.
	dataRetry = time.Second

	// raiseTimeout bounds a raise. After sqldb.IOTimeout it has noticed a connection that is dead, and tries another one.
	raiseTimeout = sqldb.IOTimeout + 2*time.Second
)

// FenceIn adds a database that holds items of queues, under the name by which the setting Database refers to it. It
// does not connect: the first worker that gets such a queue creates the tables rota_data and rota_fence if they are
// missing, as Options.Schema allows, and notes in the roster and in the database that they belong together. So the
// program starts although some of its databases are away. The pools and their limits are those of the roster's
// Options.
//
// FenceIn returns an error if the name is malformed or already taken, or if the URL is malformed. Close of the Center
// closes the database.
func (c *Center) FenceIn(name string, db Database) (*Data, error) {
	if err := roster.CheckDataName(name); err != nil {
		return nil, err
	}
	if _, err := DialectOf(db); err != nil {
		return nil, fmt.Errorf("data database %s: %w", name, err)
	}
	o := c.options.pools()
	o.ReplyTimeout = cmp.Or(o.ReplyTimeout, o.ReplyLimit(true)) // heartbeats do not notice that it is frozen (F10)
	pools, err := sqldb.Open(db, o)
	if err != nil {
		return nil, fmt.Errorf("data database %s: open %s: %w", name, db.Address, err)
	}
	c.options.bound(pools)
	d := &Data{
		c: c, name: name, db: pools, opening: make(chan struct{}, 1),
		entered: map[dataQueue]queueOwner{}, waits: map[dataQueue]DataWait{}, refused: map[string]DataProblem{},
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.data[name] != nil {
		return nil, errors.Join(fmt.Errorf("data database %s was added twice", name), pools.Close())
	}
	if c.data == nil {
		c.data = map[string]*Data{}
	}
	c.data[name] = d
	return d, nil
}

// Data returns the data database of a name, or nil if FenceIn has added none.
func (c *Center) Data(name string) *Data {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.data[name]
}

// AllData returns the data databases that FenceIn has added, by name.
func (c *Center) AllData() []*Data {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.SortedFunc(maps.Values(c.data), func(a, b *Data) int { return cmp.Compare(a.name, b.name) })
}

// Name returns the name by which the setting Database refers to the database.
func (d *Data) Name() string { return d.name }

// Address returns the URL of the database without its password.
func (d *Data) Address() string { return d.db.Database.Address }

// Dialect returns the kind of the database. Until the database was first used, it goes by the URL.
func (d *Data) Dialect() schema.Dialect {
	if d.opened.Load() {
		return d.db.Name
	}
	return d.db.Database.Dialect.Name
}

// DB returns the pool for dealers, as Center.DB does for the roster's database. Select with it.
func (d *Data) DB() *sql.DB { return d.db.Dealers }

// DataOf returns the data database of the batch that the context of Execute carries. It is nil if the batch's queue
// is in the roster's database, or if ctx carries no batch.
func DataOf(ctx context.Context) *Data {
	b, _ := batchOf(ctx)
	return b.data
}

// Fence does what the function Fence does, for a transaction of this database: it commits only while the row of the
// queue in rota_fence has the server and the epoch of the batch. It returns ErrOtherBatch for the batch of a queue
// whose items are elsewhere.
func (d *Data) Fence(ctx context.Context, tx Tx) error {
	b, err := batchOf(ctx)
	if err == nil && b.data != d {
		err = fmt.Errorf("fence %s$%s in %s: %w", b.TaskType, b.OwnSign, d.name, ErrOtherBatch)
	}
	if err != nil {
		return err
	}
	if tx, err = begun(tx); err != nil {
		return err
	}
	err = lostSince(ctx, b.saveOrHold(ctx, tx, d.fence(b.TaskType, b.Server)))
	if err != nil { // also without the table, or the rights: Enter says so, and items do not fail for it again
		d.forget(b.TaskType, b.Queue)
	}
	return sqldb.Wrap(err, "fence %s$%s in %s", b.TaskType, b.OwnSign, d.name)
}

// InTx does what the function InTx does, in this database and on the pool of DB.
func (d *Data) InTx(ctx context.Context, fn func(*sql.Tx) error) error {
	b, err := batchOf(ctx)
	if err != nil {
		return err
	}
	if err := d.open(ctx); err != nil {
		return err
	}
	begun := time.Now()
	return b.ended(d, lostSince(ctx, d.db.Retry(ctx, func() (bool, error) {
		clean, err := tryInTx(ctx, d.db, d.db.Dealers, d.Fence, fn)
		// A database that does not answer keeps its executors from the queues of the others: one wait is enough.
		silent := d.db.Class(err) == sqldb.Broken && time.Since(begun) >= sqldb.IOTimeout
		return clean && !silent, err
	})))
}

// fence returns what fences the writes of a server in this database.
func (d *Data) fence(taskType, server string) roster.Fence {
	return d.c.roster.Server(taskType, server).DataFence(d.db)
}

// Cursor returns how far a queue was read, for package manager. It returns ErrFenced as SaveCursor does.
func (d *Data) Cursor(ctx context.Context, taskType, server string, q QueueEpoch) (string, error) {
	cursor, err := d.fence(taskType, server).Cursor(ctx, q)
	if errors.Is(err, ErrFenced) {
		d.forget(taskType, q)
	}
	return cursor, err
}

// An Entry is the ownership of a queue that Data.Enter raises in a data database.
type Entry struct {
	TaskType, Server string
	Queue            QueueEpoch
	Items            roster.Items // of the queue under that epoch
	Suspect          bool         // the last call for the queue has failed: ask whether the database answers
}

// Enter is for package manager, which calls it before each select of a queue whose items are here. Unless the epoch of
// the queue was raised before, Enter raises it, and reports that. Until Enter has returned nil, the queue must not be
// selected.
//
// Enter returns ErrFenced if the server does not own the queue any more, and a *roster.AheadError if the roster says
// that it does, although the database has a later owner: the roster has lost history.
func (d *Data) Enter(ctx context.Context, e Entry) (raised bool, err error) {
	key, own := dataQueue{e.TaskType, e.Queue.ID}, queueOwner{e.Server, e.Queue.Epoch, e.Items}
	switch known, err := d.admit(key, own, e.Suspect); {
	case err != nil:
		return false, err
	case known:
		return false, nil
	}
	begun := time.Now()
	defer func() { err = d.leave(ctx, key, own, begun, err) }()
	if err := d.open(ctx); err != nil {
		return false, err
	}
	short, cancel := context.WithTimeout(ctx, raiseTimeout)
	defer cancel()
	if d.has(key, own) {
		return false, sqldb.Connect(short, d.db.Store)
	}
	f := d.fence(e.TaskType, e.Server)
	err = f.Raise(short, e.Queue, e.Items)
	if _, ahead := errors.AsType[*roster.AheadError](err); ahead {
		fence := d.c.roster.Server(e.TaskType, e.Server).Fence()
		if lost := fence.Check(ctx, e.Queue, nil); lost != nil {
			return false, roster.OfRoster(lost)
		}
	}
	return err == nil, err
}

func (d *Data) has(key dataQueue, own queueOwner) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.entered[key] == own
}

// admit reports whether a queue was raised already. While the database cannot be used, admit lets one call try it after
// each pause, and returns the problem to the others: executors that all wait for one database would do nothing for the
// queues of the others.
func (d *Data) admit(key dataQueue, own queueOwner, suspect bool) (known bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.problem.Err == nil:
		return d.entered[key] == own && !suspect, nil
	case d.trying, time.Now().Before(d.retryAt):
		return false, d.problem.Err
	}
	d.trying = true
	return false, nil
}

// leave notes how an attempt to use the database has ended.
func (d *Data) leave(ctx context.Context, key dataQueue, own queueOwner, begun time.Time, err error) error {
	_, ahead := errors.AsType[*roster.AheadError](err)
	_, held := errors.AsType[*roster.HeldError](err)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.trying = false
	if !held {
		delete(d.waits, key)
	}
	switch {
	case err == nil:
		d.problem, d.entered[key] = DataProblem{}, own
		delete(d.refused, key.taskType)
	case errors.Is(err, roster.ErrDataCursors): // the database works for other task types
		d.problem = DataProblem{}
		err = d.unusable(err)
		d.refused[key.taskType] = DataProblem{cmp.Or(d.refused[key.taskType].Since, time.Now()), err}
	case ahead, errors.Is(err, ErrFenced):
		d.problem = DataProblem{}
	case held:
		d.problem = DataProblem{}
		if d.waits[key].Since.IsZero() {
			d.waits[key] = DataWait{key.taskType, key.id, time.Now()}
		}
		err = fmt.Errorf("data database %s: %w", d.name, err)
	case roster.IsOfRoster(err), ctx.Err() != nil: // it says nothing about the data database
	default:
		if d.opened.Load() && d.db.Class(err) == sqldb.NoTable {
			d.checked.Store(false) // it was restored from a time before its tables
		}
		err = d.unusable(err)
		d.problem = DataProblem{cmp.Or(d.problem.Since, time.Now()), err}
		d.retryAt = time.Now().Add(max(dataRetry, time.Since(begun)))
	}
	return err
}

func (d *Data) unusable(err error) error {
	return fmt.Errorf("the data database %s cannot be used: %w", d.name, sqldb.OneLine(err))
}

// isDataError is what Center.IsDataError asks of each database.
func (d *Data) isDataError(err error) bool { return d.opened.Load() && isDataError(d.db, err) }

// forget makes the next Enter raise a queue again: its row is not as Enter has left it. It may be another database.
func (d *Data) forget(taskType string, q QueueEpoch) {
	d.checked.Store(false)
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.entered, dataQueue{taskType, q.ID})
}

// State returns why the database cannot be used for a task type, and its queues that wait for transactions of earlier
// owners.
func (d *Data) State(taskType string) (problem DataProblem, waits []DataWait) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for key, w := range d.waits {
		if key.taskType == taskType {
			waits = append(waits, w)
		}
	}
	slices.SortFunc(waits, func(a, b DataWait) int { return cmp.Compare(a.Queue, b.Queue) })
	return cmp.Or(d.problem, d.refused[taskType]), waits
}

// open asks the server what it is, and checks its tables and its id, before the first use.
func (d *Data) open(ctx context.Context) error {
	if d.checked.Load() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, serverTimeout)
	defer cancel()
	if err := d.begin(ctx); err != nil {
		return err
	}
	defer d.end()
	if d.checked.Load() {
		return nil
	}
	if err := d.probeLocked(ctx); err != nil {
		return err
	}
	if err := d.createTables(ctx); err != nil {
		return err
	}
	if err := d.c.roster.Data().Mark(ctx, d.db, d.name, d.Address()); err != nil {
		return err
	}
	d.checked.Store(true)
	return nil
}

// probeLocked asks the server what it is, unless that is known.
func (d *Data) probeLocked(ctx context.Context) error {
	if d.opened.Load() {
		return nil
	}
	err := probe(ctx, d.db)
	d.opened.Store(err == nil)
	return err
}

// Reach returns the database for package ops once its server has answered. Unlike Enter it creates and marks nothing.
func (d *Data) Reach(ctx context.Context) (*sqldb.DB, error) {
	ctx, cancel := context.WithTimeout(ctx, serverTimeout)
	defer cancel()
	if err := d.probe(ctx); err != nil {
		return nil, err
	}
	return d.db, sqldb.Connect(ctx, d.db.Store)
}

func (d *Data) probe(ctx context.Context) error {
	if d.opened.Load() {
		return nil
	}
	if err := d.begin(ctx); err != nil {
		return err
	}
	defer d.end()
	return d.probeLocked(ctx)
}

// begin waits until no other call asks the server what it is. This is no mutex, because a server may not answer, and a
// call that waits for another one must end with its context.
func (d *Data) begin(ctx context.Context) error {
	select {
	case d.opening <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (d *Data) end() { <-d.opening }

func (d *Data) createTables(ctx context.Context) error {
	err := schema.CheckFence(ctx, d.db.Store, d.db.Name)
	if errors.Is(err, schema.ErrMissing) && d.c.options.mayCreate(d.db.Database) {
		err = schema.UpFence(ctx, d.db.Store, d.db.Name)
	}
	return err
}

// MigrateData creates the tables of the fence in a database with items, if they are missing, and reports that. It
// refuses the servers that Open refuses.
func MigrateData(ctx context.Context, db Database) (created bool, err error) {
	err = withRole(ctx, db, sqldb.RoleSchema, func(pool *sql.DB) error {
		found, err := db.Probe(ctx, pool)
		if err != nil {
			return err
		}
		err = schema.CheckFence(ctx, pool, found.Name)
		if created = errors.Is(err, schema.ErrMissing); created {
			err = schema.UpFence(ctx, pool, found.Name)
		}
		return err
	})
	return created && err == nil, err
}
