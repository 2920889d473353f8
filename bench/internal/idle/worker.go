package idle

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dutyrota/rota/bench/internal/stage"
	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/processor"
)

var tables = map[string][]string{
	stage.Postgres: {`CREATE TABLE work (id bigint PRIMARY KEY, state varchar(10) NOT NULL)`, `CREATE INDEX work_new ON work (state, id)`},
	stage.MariaDB:  {`CREATE TABLE work (id bigint PRIMARY KEY, state varchar(10) NOT NULL)`, `CREATE INDEX work_new ON work (state, id)`},
}

// serving adds a dealer to a manager.
type serving func(taskType string, s manager.Settings) manager.Task

// dealer marks rows. All workers share it.
type dealer struct {
	db    *stage.Database
	asked atomic.Int64   // selects and peeks
	begun chan execution // gets each row when its Execute begins
}

type execution struct {
	id int64
	at time.Time
}

func plain(d *dealer) serving {
	return func(taskType string, s manager.Settings) manager.Task { return manager.Serve(taskType, d, s) }
}

func peeking(d *dealer) serving {
	return func(taskType string, s manager.Settings) manager.Task { return manager.Serve(taskType, peeker{d}, s) }
}

// mark returns the mark of the nth parameter.
func (d *dealer) mark(n int) string {
	if d.db.Server.Kind == stage.Postgres {
		return fmt.Sprint("$", n)
	}
	return "?"
}

// next returns the select of a queue, behind the first n parameters of a statement.
func (d *dealer) next(n int) string {
	return fmt.Sprintf(`SELECT id FROM work WHERE state = 'NEW' AND mod(id, %s) = %s ORDER BY id LIMIT %s`, d.mark(n+1), d.mark(n+2), d.mark(n+3))
}

// Select implements processor.TaskDealer.
func (d *dealer) Select(ctx context.Context, s processor.Selection) ([]int64, error) {
	d.asked.Add(1)
	return center.Column[int64](ctx, d.db.DB, d.next(0), s.Total, s.Queue.Index, s.Limit)
}

// Execute implements processor.TaskDealer.
func (d *dealer) Execute(ctx context.Context, ids []int64) error {
	now := time.Now()
	for _, id := range ids {
		if _, err := d.db.ExecContext(ctx, `UPDATE work SET state = 'DONE' WHERE id = `+d.mark(1), id); err != nil {
			return err
		}
		d.begun <- execution{id, now}
	}
	return nil
}

// peeker is a dealer that peeks as the sql dealer does.
type peeker struct{ *dealer }

// Peek implements processor.Peeker.
func (p peeker) Peek(ctx context.Context, idle []processor.Selection) (busy []string, err error) {
	p.asked.Add(1)
	var parts []string
	var args []any
	for _, s := range idle {
		parts = append(parts, "EXISTS ("+p.next(len(args))+")")
		args = append(args, s.Total, s.Queue.Index, 1)
	}
	found := make([]bool, len(idle))
	targets := make([]any, len(idle))
	for i := range found {
		targets[i] = &found[i]
	}
	err = p.db.QueryRowContext(ctx, `SELECT `+strings.Join(parts, ", "), args...).Scan(targets...)
	for i, s := range idle {
		if found[i] {
			busy = append(busy, s.Queue.ID)
		}
	}
	return busy, err
}

// fleet is the workers of a measurement.
type fleet struct {
	dealer   *dealer
	managers []*manager.Manager
	queues   int
	stop     func()
	failed   chan error
}

const taskType = "idle"

// start starts the workers.
func start(ctx context.Context, db *stage.Database, w way, o Options) (f *fleet, err error) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	var centers []*center.Center
	f = &fleet{dealer: &dealer{db: db, begun: make(chan execution, o.Rows)}, queues: o.Workers * o.Queues, failed: make(chan error, o.Workers)}
	f.stop = func() {
		cancel()
		running.Wait()
		for _, c := range centers {
			_ = c.Close()
		}
	}
	serve := w.dealer(f.dealer)
	for range o.Workers {
		c, err := center.Open(ctx, anydb.URL(db.URL), center.Options{Schema: center.SchemaRequire})
		if err != nil {
			f.stop()
			return nil, err
		}
		centers = append(centers, c)
		m, err := manager.New(c, manager.Config{}, serve(taskType, manager.Settings{Queues: f.queues, Hinted: w.hinted}))
		if err != nil {
			f.stop()
			return nil, err
		}
		f.managers = append(f.managers, m)
		running.Go(func() {
			if err := m.Run(ctx); err != nil {
				f.failed <- err
			}
		})
	}
	return f, nil
}

// settle waits until each worker has its part of the queues, and all of them were found empty.
func (f *fleet) settle(ctx context.Context) error {
	for {
		even := true
		for _, m := range f.managers {
			s := m.Status()[0]
			even = even && s.Queues == f.queues/len(f.managers) && s.Empty == s.Queues
		}
		if even {
			return sleep(ctx, time.Second)
		}
		select {
		case err := <-f.failed:
			return err
		case <-ctx.Done():
			return fmt.Errorf("the workers do not settle: %w", ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// insert inserts rows, and returns how many milliseconds each has waited.
func (f *fleet) insert(ctx context.Context, o Options, hints bool) (waits []float64, err error) {
	rnd := rand.New(rand.NewPCG(1, 2))
	committed := map[int64]time.Time{}
	for n := range o.Rows {
		if err := sleep(ctx, time.Duration(rnd.Int64N(2*int64(o.Every)))); err != nil {
			return nil, err
		}
		id := int64(n*f.queues + rnd.IntN(f.queues))
		if _, err := f.dealer.db.ExecContext(ctx, `INSERT INTO work (id, state) VALUES (`+f.dealer.mark(1)+`, 'NEW')`, id); err != nil {
			return nil, err
		}
		committed[id] = time.Now()
		if hints {
			if err := f.dealer.db.Wake(ctx, taskType, strconv.FormatInt(id, 10)); err != nil {
				return nil, err
			}
		}
	}
	for range o.Rows {
		select {
		case e := <-f.dealer.begun:
			waits = append(waits, max(0, float64(e.at.Sub(committed[e.id]))/float64(time.Millisecond)))
		case err := <-f.failed:
			return nil, err
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), errors.New("not all rows were executed"))
		}
	}
	return waits, nil
}
