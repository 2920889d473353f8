// Package scale measures a roster of many queues and servers on real databases: the time to converge, the cost of a
// heartbeat, and how long the lock row is held.
package scale

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/bench/internal/report"
	"github.com/dutyrota/rota/bench/internal/stage"
)

// Options are the sizes of the benchmark.
type Options struct {
	Queues, Servers int
	Joins           int // servers that join at once
	Losses          int // servers that die at once
	Heartbeat       time.Duration
	Rest            time.Duration // pause before Idle: idle sessions of PostgreSQL report their counters only after 10 s
	Idle            time.Duration // how long the heartbeats are counted while nothing changes
	Watch           time.Duration // how long people look at the console
	Growth          []Size        // rosters for the costs that grow with the size
	Beats           int           // heartbeats for each of these rosters
}

// Size is the size of a roster.
type Size struct{ Queues, Servers int }

// `make bench` runs Full, the tests run Short.
var (
	Full = Options{
		Queues: 10_000, Servers: 1_000, Joins: 100, Losses: 100, Heartbeat: 2 * time.Second, Rest: 11 * time.Second, Idle: 14 * time.Second, Watch: time.Minute, Beats: 2000,
		Growth: []Size{{100, 10}, {1_000, 100}, {10_000, 1_000}, {100, 100}, {10_000, 100}},
	}
	Short = Options{
		Queues: 60, Servers: 6, Joins: 2, Losses: 1, Heartbeat: 300 * time.Millisecond, Idle: time.Second, Watch: time.Second, Beats: 10,
		Growth: []Size{{10, 1}, {60, 6}, {200, 20}, {2_000, 200}},
	}
)

// Result has the measurements on one database.
type Result struct {
	Database string
	Idle     Idle
	Viewers  Viewers
	Changes  []Change
	Growth   []Growth
}

// Idle is the cost of a roster in which nothing changes.
type Idle struct {
	Statements, RowsRead, RowsMade float64 // per heartbeat
	CPU                            float64 // of the database, in milliseconds per heartbeat; 0 if unknown
	Busy                           float64 // processors that the database keeps busy
	Kept                           float64 // percentage of the due heartbeats that were sent
}

// statements returns the statements per heartbeat, rounded to tenths. Sessions of PostgreSQL report their counters once a
// second, so that all counters are off by the same factor. A heartbeat writes one row, so the rows written correct for it.
func (i Idle) statements() float64 { return math.Round(10*i.Statements/i.RowsMade) / 10 }

// Change is a change of the roster that moves queues.
type Change struct {
	What     string
	Took     time.Duration // until converged; for a death since the server is expired
	Locks    int           // how often the lock row was taken
	Median   time.Duration // how long it was held
	Longest  time.Duration
	Moves    int64 // changes of owner
	Failures int64 // failed calls, which were repeated
	Late     bool  // it had not converged after Took
}

// Heartbeats returns Took in heartbeat intervals.
func (c Change) Heartbeats(interval time.Duration) float64 {
	return float64(c.Took) / float64(interval)
}

// Run runs the benchmark on the servers.
func Run(ctx context.Context, servers []*stage.Server, o Options) (report.Part, error) {
	var results []*Result
	for _, s := range servers {
		r, err := on(ctx, s, o)
		if err != nil {
			return report.Part{}, fmt.Errorf("scale on %s: %w", stage.Name(s.Kind), err)
		}
		results = append(results, r)
	}
	return condense(results, o), nil
}

func on(ctx context.Context, s *stage.Server, o Options) (*Result, error) {
	r := &Result{Database: stage.Name(s.Kind)}
	for _, size := range o.Growth {
		stage.Progress("scale: %s: %d queues, %d workers", r.Database, size.Queues, size.Servers)
		g, err := grow(ctx, s, size, o, r)
		if err != nil {
			return nil, err
		}
		r.Growth = append(r.Growth, g)
	}
	beating, cancel := context.WithCancel(ctx)
	f, err := newFleet(beating, s, o)
	if err != nil {
		cancel()
		return nil, err
	}
	defer f.close(ctx)
	defer cancel()
	return r, f.play(beating, r, o)
}

// play starts the fleet and changes it.
func (f *fleet) play(ctx context.Context, r *Result, o Options) error {
	if err := f.populate(ctx, o.Servers); err != nil {
		return err
	}
	stage.Progress("scale: %s: idle for %s", r.Database, o.Idle)
	var err error
	if r.Idle, err = f.idle(ctx, o); err != nil {
		return err
	}
	for _, n := range []int{1, o.Joins} {
		what := strings.Replace(fmt.Sprintf("%d workers join", n), "1 workers join", "1 worker joins", 1)
		if err := f.step(ctx, r, what, func() (time.Time, error) { return time.Now(), f.join(ctx, n) }); err != nil {
			return err
		}
		if r.late() {
			return nil
		}
	}
	return f.step(ctx, r, fmt.Sprintf("%d workers die", o.Losses), func() (time.Time, error) {
		return f.lose(o.Losses).Add(f.settings.JudgeDeadInterval), nil
	})
}

// populate makes a roster whose queues have owners before the first heartbeat.
func (f *fleet) populate(ctx context.Context, n int) error {
	stage.Progress("scale: %d workers register", n)
	servers, err := f.register(ctx, n)
	if err != nil {
		return err
	}
	if err := f.plan(ctx, servers[0]); err != nil {
		return err
	}
	if f.db.Server.Kind == stage.Postgres { // like autovacuum, which is off on a private server
		if err := f.db.Do(ctx, "ANALYZE"); err != nil {
			return err
		}
	}
	f.start(ctx)
	return f.converge(ctx)
}

// step calls do and records the change. The change counts from the moment that do returns.
func (f *fleet) step(ctx context.Context, r *Result, what string, do func() (time.Time, error)) error {
	stage.Progress("scale: %s: %s", r.Database, what)
	c, err := f.change(ctx, what, do)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	r.Changes = append(r.Changes, c)
	return nil
}

// late reports whether the last change has not converged. Then the next change would measure both.
func (r *Result) late() bool { return len(r.Changes) > 0 && r.Changes[len(r.Changes)-1].Late }

func (f *fleet) join(ctx context.Context, n int) error {
	_, err := f.register(ctx, n)
	return err
}

// lose stops the heartbeats of n servers and returns the time of their last heartbeat.
func (f *fleet) lose(n int) (last time.Time) {
	for _, h := range f.heartbeaters {
		h.mu.Lock()
		for _, s := range h.servers {
			if n > 0 && !s.dead.Load() {
				s.dead.Store(true)
				n--
				if beat := s.due.Add(-f.settings.HeartbeatInterval); beat.After(last) {
					last = beat
				}
			}
		}
		h.mu.Unlock()
	}
	return last
}

// idle measures a roster in which nothing changes.
func (f *fleet) idle(ctx context.Context, o Options) (Idle, error) {
	if !sleep(ctx, o.Rest) {
		return Idle{}, ctx.Err()
	}
	var beats float64
	u, err := f.db.Measure(ctx, func() error {
		before := f.beats.Load()
		if !sleep(ctx, o.Idle) {
			return ctx.Err()
		}
		beats = float64(f.beats.Load() - before)
		return nil
	})
	if err != nil || beats == 0 {
		return Idle{}, fmt.Errorf("%.0f heartbeats: %w", beats, err)
	}
	return Idle{
		Statements: u.Statements / beats, RowsRead: u.RowsRead / beats, RowsMade: u.RowsMade / beats,
		CPU: u.CPU.Seconds() * 1000 / beats, Busy: u.CPU.Seconds() / u.Took.Seconds(),
		Kept: 100 * beats / (float64(o.Servers) * u.Took.Seconds() / o.Heartbeat.Seconds()),
	}, nil
}

// change calls do and waits until the roster has converged.
func (f *fleet) change(ctx context.Context, what string, do func() (time.Time, error)) (Change, error) {
	f.takeLocks()
	fails := f.fails.Load()
	before, err := f.db.Epochs(ctx)
	if err != nil {
		return Change{}, err
	}
	start, err := do()
	if err != nil {
		return Change{}, err
	}
	late := f.converge(ctx)
	if late != nil && !errors.Is(late, errLate) {
		return Change{}, late
	}
	c := Change{What: what, Took: time.Since(start), Failures: f.fails.Load() - fails, Late: late != nil}
	after, err := f.db.Epochs(ctx)
	c.Moves = after - before
	locks := f.takeLocks()
	slices.Sort(locks)
	if c.Locks = len(locks); c.Locks > 0 {
		c.Median, c.Longest = locks[(len(locks)-1)/2], locks[len(locks)-1]
	}
	return c, err
}

// patience is the time limit of a change.
const patience = 2 * time.Minute

var errLate = fmt.Errorf("not converged within %s", patience)

// converge waits until each queue has a live owner that knows it, no queue moves, and the shares are balanced.
func (f *fleet) converge(ctx context.Context) error {
	for deadline := time.Now().Add(patience); ; {
		ok, err := f.converged(ctx)
		if err != nil || ok {
			return err
		}
		if time.Now().After(deadline) {
			return errLate
		}
		if !sleep(ctx, 100*time.Millisecond) {
			return ctx.Err()
		}
	}
}

// converged asks the database only when the servers know all queues, to keep the load of the benchmark itself small.
func (f *fleet) converged(ctx context.Context) (bool, error) {
	live := int64(0)
	for _, h := range f.heartbeaters {
		h.mu.Lock()
		for _, s := range h.servers {
			if !s.dead.Load() {
				live++
			}
		}
		h.mu.Unlock()
	}
	if f.known() != int64(f.settings.Queues) {
		return false, nil
	}
	for query, want := range map[string]int64{
		`SELECT COUNT(*) FROM schedule_server`: live,
		`SELECT COUNT(*) FROM schedule_task_running WHERE membership_version <> planned_version OR skipped IS NOT NULL`:                                         0,
		`SELECT COUNT(*) FROM schedule_queue WHERE cur_server IS NULL OR req_server IS NOT NULL`:                                                                0,
		fmt.Sprintf(`SELECT COUNT(*) FROM (SELECT 1 FROM schedule_queue GROUP BY cur_server HAVING COUNT(*) > %d) far`, (int64(f.settings.Queues)+live-1)/live): 0,
		fmt.Sprintf(`SELECT COUNT(*) FROM schedule_server s LEFT JOIN (SELECT cur_server, COUNT(*) AS n FROM schedule_queue GROUP BY cur_server) q
			ON q.cur_server = s.uuid WHERE COALESCE(q.n, 0) < %d`, int64(f.settings.Queues)/live): 0,
	} {
		n, err := f.db.Number(ctx, query)
		if err != nil || n != want {
			return false, err
		}
	}
	return true, nil
}

// condense returns the tables and goals for the results.
func condense(results []*Result, o Options) report.Part {
	part := report.Part{Name: "scale", Data: results, About: fmt.Sprintf(`%d queues and %d workers with heartbeats %s apart. All servers are in one
process, with %d connections for heartbeats. The database gets the statements that as many processes would send.`, o.Queues, o.Servers, o.Heartbeat, fleetHeartbeaters)}
	idle := report.Table{Title: "When nothing changes", Columns: []string{"database", "statements per heartbeat", "rows read", "rows written", "database CPU per heartbeat", "processors busy", "heartbeats kept"}}
	changes := report.Table{Title: "Changes", Columns: []string{"database", "change", "converged after", "in heartbeats", "moves", "lock row taken", "held, median", "longest", "failed calls"}}
	for _, r := range results {
		idle.Add(r.Database, f2(r.Idle.Statements), f2(r.Idle.RowsRead), f2(r.Idle.RowsMade), f2(r.Idle.CPU)+" ms", f2(r.Idle.Busy), fmt.Sprintf("%.0f %%", r.Idle.Kept))
		part.Goals = append(part.Goals, report.AtMost(r.Database+": statements per heartbeat", "%.1f", 2, r.Idle.statements()))
		for _, c := range r.Changes {
			changes.Add(r.Database, c.What, c.Took.Round(10*time.Millisecond), f2(c.Heartbeats(o.Heartbeat)), c.Moves, c.Locks,
				c.Median.Round(100*time.Microsecond), c.Longest.Round(100*time.Microsecond), c.Failures)
			part.Goals = append(part.Goals,
				report.AtMost(r.Database+", "+c.What+": heartbeats until converged", "%.1f", 3, c.Heartbeats(o.Heartbeat)),
				report.Below(r.Database+", "+c.What+": lock row held, median", "%.0f ms", 300, float64(c.Median)/1e6))
		}
	}
	changes.Note = fmt.Sprintf("The benchmark gives up a change after "+patience.String()+" and leaves out the changes after it. The heartbeats of a death count from %s after the last heartbeat of the dead servers, when they expire.", 5*o.Heartbeat)
	part.Tables = []report.Table{idle, viewersTable(results, o), changes, growthTable(results), intervals(results, o)}
	part.Goals = append(part.Goals, flat(results, o)...)
	return part
}

func f2(f float64) string { return fmt.Sprintf("%.2f", f) }
