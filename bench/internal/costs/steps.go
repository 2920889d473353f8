package costs

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/schema"
)

const (
	taskType = "costs"
	joining  = "joining:1:00000000" // the server that joins
)

// steps is a roster, and the costs of the steps that were made in it.
type steps struct {
	counter
	ctx   context.Context // of the roster
	size  Size
	c     *center.Center
	held  atomic.Int64 // the longest since it was last set
	costs []Cost
	token string // of the last heartbeat
	watch roster.WatchRange
}

func (r *steps) locked(_ string, d time.Duration) {
	for longest := r.held.Load(); int64(d) > longest; longest = r.held.Load() {
		r.held.CompareAndSwap(longest, int64(d))
	}
}

// measure makes a step a number of times, and records the mean of its costs. Of a step that fails it records the error.
func (r *steps) measure(step string, times int, do func() error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	at := r.read()
	r.held.Store(0)
	c := Cost{Step: step}
	for range times {
		if err := do(); err != nil {
			c.Failed = err.Error()
			break
		}
	}
	now, n := r.read(), float64(times)
	runtime.ReadMemStats(&after)
	c.Statements, c.Commits, c.Rows = (now[0]-at[0])/n, (now[1]-at[1])/n, (now[2]-at[2])/n
	c.Sent, c.Received = (now[3]-at[3])/n, (now[4]-at[4])/n
	c.Held, c.Allocated = time.Duration(r.held.Load()), float64(after.TotalAlloc-before.TotalAlloc)/n
	r.costs = append(r.costs, c)
}

// read returns the counters.
func (r *steps) read() (values [5]float64) {
	for i, v := range []*atomic.Int64{&r.statements, &r.commits, &r.rows, &r.sent, &r.received} {
		values[i] = float64(v.Load())
	}
	return values
}

// play makes all steps.
func (r *steps) play(o Options) error {
	r.measure("the first worker defines the task type", 1, func() error {
		_, err := ops.New(r.c).Tasks().Define(r.ctx, taskType, center.Settings{Queues: r.size.Queues})
		return err
	})
	if err := r.populate(); err != nil {
		return fmt.Errorf("make the workers: %w", err)
	}
	if err := r.analyze(); err != nil {
		return err
	}
	first := r.server(0)
	r.measure("a first plan: 10,000 queues are granted at most", max(1, r.size.Queues/10_000), func() error {
		return r.plan(first, roster.RebalanceOptions{Always: true})
	})
	for range 4 { // a connection prepares a statement at its second execution
		if err := r.beat(first); err != nil {
			return err
		}
	}
	r.measure("heartbeat", o.Beats, func() error { return r.beat(first) })
	r.measure("a worker reads its queues", o.Beats, func() error {
		_, err := r.c.Roster().Server(taskType, first).View(r.ctx)
		return err
	})
	r.measure("fenced transaction without work", o.Beats, r.fence(first))
	r.measure("audit", 1, func() error { return r.audit(first) })
	r.join()
	r.measure("a worker that waits for queues polls", o.Beats, func() error {
		_, err := r.c.Roster().Server(taskType, joining).QueueVersion(r.ctx)
		return err
	})
	if err := r.handOver(); err != nil {
		return fmt.Errorf("hand over: %w", err)
	}
	r.measure("a worker leaves: announces it, plans", 1, func() error {
		return r.c.Roster().Server(taskType, joining).Drain(r.ctx, roster.Reservation{})
	})
	r.measure("a worker leaves: hands over what it has, plans", 1, func() error {
		return r.c.Roster().Server(taskType, joining).Leave(r.ctx, nil, roster.Reservation{})
	})
	return r.die(first)
}

// populate inserts the servers as copies of one that has registered, because each registration takes the lock row.
func (r *steps) populate() error {
	if err := r.register(r.server(0)); err != nil {
		return err
	}
	list, err := r.columns()
	if err != nil {
		return err
	}
	tx, err := r.c.DB().BeginTx(r.ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // after a commit it does nothing
	for i := 1; i < r.size.Servers; i++ {
		_, err := tx.ExecContext(r.ctx, fmt.Sprintf(`INSERT INTO schedule_server (uuid, process, %[1]s) SELECT '%[2]s', '%[2]s', %[1]s
			FROM schedule_server WHERE uuid = '%[3]s'`, list, r.server(i), r.server(0)))
		if err != nil {
			return err
		}
	}
	return tx.Commit()
}

// analyze gathers the statistics that a server gathers by itself within a minute, unless it is a private one. SQLite
// never does.
func (r *steps) analyze() error {
	analyze := map[schema.Dialect]string{
		schema.Postgres: "ANALYZE", schema.MySQL: "ANALYZE TABLE schedule_server, schedule_queue", schema.SQLite: "SELECT 1",
	}
	_, err := r.c.DB().ExecContext(r.ctx, analyze[r.c.Dialect().Family()])
	return err
}

// columns returns the other columns of schedule_server than uuid and process.
func (r *steps) columns() (string, error) {
	rows, err := r.c.DB().QueryContext(r.ctx, `SELECT * FROM schedule_server WHERE 1 = 0`)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	names, err := rows.Columns()
	names = slices.DeleteFunc(names, func(name string) bool { return name == "uuid" || name == "process" })
	return strings.Join(names, ", "), errors.Join(err, rows.Err())
}

// server returns the uuid of a server.
func (r *steps) server(i int) string { return fmt.Sprintf("host%03d:%d:%08x", i%251, 1000+i, i) }

func (r *steps) register(uuid string) error {
	_, err := r.c.Roster().Register(r.ctx, roster.ServerInfo{
		UUID: uuid, TaskType: taskType, Host: uuid[:7], Process: uuid, JudgeDeadInterval: 24 * time.Hour, HeartbeatToken: "first",
	})
	return err
}

func (r *steps) plan(actor string, o roster.RebalanceOptions) error {
	_, err := r.c.Roster().Planner(taskType, actor).Rebalance(r.ctx, o)
	return err
}

// beat sends a heartbeat of the first server.
func (r *steps) beat(uuid string) error {
	token := rand.Text()
	replies, err := r.c.Roster().SendHeartbeat(r.ctx, roster.Heartbeat{
		Token:   token,
		Servers: []roster.ServerReport{{UUID: uuid, OldToken: cmp.Or(r.token, "first"), TaskType: taskType, State: ops.StateServing, WatchingSince: time.Now(), WatchRange: r.watch}},
	})
	reply, ok := replies[uuid]
	if err == nil && !ok {
		err = fmt.Errorf("heartbeat of %s: no reply", uuid)
	}
	r.token, r.watch = token, reply.Watch.Range
	return err
}

// fence returns a transaction that is fenced for a queue of the server.
func (r *steps) fence(uuid string) func() error {
	v, err := r.c.Roster().Server(taskType, uuid).View(r.ctx)
	if err != nil || len(v.Queues) == 0 {
		return func() error { return fmt.Errorf("%s has no queue: %w", uuid, err) }
	}
	ctx := r.c.Bind(r.ctx, center.Batch{Server: uuid, TaskType: taskType, Queue: center.QueueEpoch{ID: v.Queues[0].ID, Epoch: v.Queues[0].Epoch}})
	return func() error { return center.InTx(ctx, r.c.DB(), func(*sql.Tx) error { return nil }) }
}

func (r *steps) audit(uuid string) error {
	if turn, err := r.c.Roster().Planner(taskType, uuid).Audit(r.ctx); err != nil || !turn {
		return fmt.Errorf("not its turn: %w", err)
	}
	return nil
}

func (r *steps) join() {
	r.measure("a worker joins: registers", 1, func() error { return r.register(joining) })
	r.measure("a worker joins: plans", 1, func() error { return r.plan(joining, roster.RebalanceOptions{}) })
}

// handOver makes the owners of the queues that the joining server waits for release them.
func (r *steps) handOver() error {
	v, err := r.c.Roster().Server(taskType, joining).View(r.ctx)
	if err != nil || len(v.Queues) == 0 {
		return err // the plan has failed
	}
	next := 0
	r.measure("an owner hands a queue over", len(v.Queues), func() error {
		q := v.Queues[next]
		next++
		moved, err := r.c.Roster().Server(taskType, q.Owner).Release(r.ctx, []roster.Handover{{QueueID: q.ID, Epoch: q.Epoch, Requester: joining}})
		if err == nil && len(moved) == 0 {
			err = fmt.Errorf("queue %s stays", q.ID)
		}
		return err
	})
	return nil
}

// die makes the last server silent for long enough, and another one expire it.
func (r *steps) die(actor string) error {
	_, err := r.c.DB().ExecContext(r.ctx, `UPDATE schedule_server SET judge_dead_interval_ms = 1 WHERE uuid = '`+r.server(r.size.Servers-1)+`'`)
	if err != nil {
		return err
	}
	if err := r.beat(actor); err != nil {
		return err
	}
	r.measure("a worker has died: expires it, plans", 1, func() error {
		return r.plan(actor, roster.RebalanceOptions{Watched: time.Hour, MaxHeartbeatAge: time.Hour})
	})
	return nil
}
