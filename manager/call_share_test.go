package manager

import (
	"context"
	"fmt"
	"math/rand"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dutyrota/rota/internal/engine"
	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/plan/plantest"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/processor"
)

// shareWorld is a task type with max_in_flight: servers with real processors and shares, and the rows that a database
// has of them. Plans, heartbeats and their replies are steps. A heartbeat may get lost, arrive late, or have a reply
// that is lost or old.
type shareWorld struct {
	*testing.T
	rng     *rand.Rand
	plans   plantest.Roster // which server owns how many queues
	rows    []*shareServer  // registered, the oldest first
	late    []lateHeartbeat
	joined  int
	granted int // the sum at the last check
}

// shareServer is a server and its row.
type shareServer struct {
	uuid  string
	row   roster.InFlightShare
	old   roster.InFlightShare // what the row was before the last plan that wrote it
	share *callShare
	proc  *engine.Processor
	stop  context.CancelFunc
	ended sync.WaitGroup
	dead  bool

	inFlight, executed atomic.Int64 // calls of Execute
}

// lateHeartbeat is a heartbeat that its sender has given up and that is still under way.
type lateHeartbeat struct {
	to *shareServer
	roster.InFlightLowering
}

// Select implements processor.TaskDealer: there are always items.
func (s *shareServer) Select(_ context.Context, sel processor.Selection) (items []int, _ error) {
	for range sel.Limit {
		items = append(items, int(s.executed.Load()))
	}
	return items, nil
}

// Execute implements processor.TaskDealer. It takes up to 2.2 s, and ends with its process.
func (s *shareServer) Execute(ctx context.Context, _ []int) error {
	s.inFlight.Add(1)
	defer s.inFlight.Add(-1)
	select {
	case <-ctx.Done():
	case <-time.After(time.Duration(1+s.executed.Add(1)*7%11) * 200 * time.Millisecond):
	}
	return nil
}

func (w *shareWorld) join() {
	w.joined++
	s := &shareServer{uuid: fmt.Sprintf("%02d", w.joined)}
	var err error
	s.proc, err = engine.New(s, engine.Env{}, engine.Settings{
		ThreadNumber: 4, FetchNumber: 8, ExecuteNumber: 1, SleepTimeNoData: time.Second, SleepTimeInterval: time.Millisecond, Retry: time.Second, RetryMax: time.Second,
	})
	if err != nil {
		w.Fatal(err)
	}
	s.share = &callShare{base: &base{proc: s.proc, heartbeater: &heartbeater{}}}
	s.share.follow(s.row) // a server executes nothing before a reply (S11)
	for i := range 3 {
		if err := s.proc.Grant(processor.Queue{ID: fmt.Sprint(i), Index: i}, 3); err != nil {
			w.Fatal(err)
		}
	}
	var ctx context.Context
	ctx, s.stop = context.WithCancel(w.Context())
	s.ended.Go(func() { _ = s.proc.Run(ctx) })
	w.rows = append(w.rows, s)
	w.plans.Join(s.uuid)
	w.plan()
	w.check()
}

// plan is what a rebalance under the lock row does. Queues move at once.
func (w *shareWorld) plan() {
	if err := w.plans.Rebalance(); err != nil {
		w.Fatal(err)
	}
	w.plans.ReleaseAll("")
	owned := w.plans.Owned()
	w.write(func(shares []plan.Share) []plan.Share {
		for i := range shares {
			shares[i].Queues = owned[shares[i].UUID]
		}
		return plan.ShareOut(w.plans.Limits.InFlight, shares)
	})
}

// raise is what a rebalance does between two plans.
func (w *shareWorld) raise() {
	w.write(func(shares []plan.Share) []plan.Share { return plan.Raise(w.plans.Limits.InFlight, shares) })
}

func (w *shareWorld) write(next func([]plan.Share) []plan.Share) {
	shares := make([]plan.Share, len(w.rows))
	for i, s := range w.rows {
		shares[i] = plan.Share{UUID: s.uuid, Granted: int(s.row.Granted), Target: int(s.row.Target)}
	}
	for i, n := range next(shares) {
		if row := &w.rows[i].row; int(row.Granted) != n.Granted || int(row.Target) != n.Target {
			w.rows[i].old = *row
			*row = roster.InFlightShare{
				Granted: roster.CallLimit(n.Granted), Target: roster.CallLimit(n.Target), Version: row.Version + 1,
			}
		}
	}
}

// remove deletes the row of a server that has left or is expired, and plans.
func (w *shareWorld) remove(s *shareServer) {
	s.stop()
	w.rows = slices.DeleteFunc(w.rows, func(other *shareServer) bool { return other == s })
	w.plans.Remove(s.uuid)
	w.plan()
}

// apply is the UPDATE of a heartbeat.
func (b lateHeartbeat) apply() {
	if row := &b.to.row; b.Version != 0 && row.Version == b.Version && int(row.Granted) > b.To {
		row.Granted = roster.CallLimit(b.To)
	}
}

// heartbeat sends a heartbeat, and gets its reply unless the network or a node that lags prevents that.
func (w *shareWorld) heartbeat(s *shareServer, faults bool) {
	b := lateHeartbeat{s, s.share.lowering()}
	fault := 9
	if faults {
		fault = w.rng.Intn(10)
	}
	switch fault {
	case 0: // lost
	case 1, 2:
		w.late = append(w.late, b)
	case 3: // its reply is lost
		b.apply()
	case 4: // the reply comes from a node that has not applied the last plan
		b.apply()
		if s.old.Version > 0 {
			s.share.follow(s.old)
		}
	default:
		b.apply()
		s.share.follow(s.row)
	}
}

func (w *shareWorld) step() {
	s := w.rows[w.rng.Intn(len(w.rows))]
	switch w.rng.Intn(20) {
	case 0:
		if len(w.rows) < 6 {
			w.join()
		}
	case 1:
		if s.dead { // it is expired
			w.remove(s)
		} else if len(w.rows) > 1 {
			s.proc.SetMaxInFlight(0) // it drains
			time.Sleep(3 * time.Second)
			w.remove(s)
		}
	case 2:
		if !s.dead && w.rng.Intn(3) == 0 { // it crashes
			s.dead = true
			s.stop()
		}
	case 3:
		if w.rng.Intn(3) == 0 {
			w.plans.Limits.InFlight = 1 + w.rng.Intn(6)
			w.plan()
		}
	case 4, 5:
		w.raise()
	case 6, 7:
		if n := len(w.late); n > 0 {
			i := w.rng.Intn(n)
			w.late[i].apply()
			w.late = slices.Delete(w.late, i, i+1)
		}
	case 8, 9, 10:
		time.Sleep(time.Duration(w.rng.Intn(10)) * 100 * time.Millisecond)
	default:
		if !s.dead {
			w.heartbeat(s, true)
		}
	}
}

// check checks P10: no server has more calls in flight than its row says, and the rows never rise beyond the limit.
func (w *shareWorld) check() {
	synctest.Wait()
	sum := 0
	for _, s := range w.rows {
		sum += int(s.row.Granted)
		if n := int(s.inFlight.Load()); n > int(s.row.Granted) {
			w.Fatalf("server %s has %d calls in flight, its row is %+v", s.uuid, n, s.row)
		}
	}
	if limit := w.plans.Limits.InFlight; sum > max(limit, w.granted) {
		w.Fatalf("%d calls are granted, %d before, and the limit is %d", sum, w.granted, limit)
	}
	w.granted = sum
}

// settle lets everything work for a while, and checks that all calls are granted and that each server with queues
// works.
func (w *shareWorld) settle() {
	for _, s := range slices.Clone(w.rows) {
		if s.dead {
			w.remove(s)
		}
	}
	if len(w.rows) == 0 {
		w.join()
	}
	before := map[string]int64{}
	for range 10 {
		for _, s := range w.rows {
			w.heartbeat(s, false)
			w.check()
		}
		w.raise()
		w.check()
		for _, s := range w.rows {
			before[s.uuid] = s.executed.Load()
		}
		time.Sleep(10 * time.Second)
	}
	if w.granted != w.plans.Limits.InFlight {
		w.Fatalf("%d of %d calls are granted", w.granted, w.plans.Limits.InFlight)
	}
	for uuid, queues := range w.plans.Owned() {
		i := slices.IndexFunc(w.rows, func(s *shareServer) bool { return s.uuid == uuid })
		if s := w.rows[i]; s.row.Granted == 0 || s.executed.Load() == before[uuid] {
			w.Fatalf("server %s owns %d queues and executes nothing: %+v", uuid, queues, s.row)
		}
	}
}

// P10: servers join, leave and crash, and heartbeats are lost or late. The calls in flight stay within the limit, and
// no queue starves.
func TestCallSharesStayWithinTheLimit(t *testing.T) {
	for seed := range int64(200) {
		synctest.Test(t, func(t *testing.T) {
			w := &shareWorld{T: t, rng: rand.New(rand.NewSource(seed)), plans: plantest.Roster{Queues: plantest.Numbered(0, 7)}}
			w.plans.Limits.InFlight = 1 + w.rng.Intn(6)
			var all []*shareServer
			defer func() {
				for _, s := range all {
					s.stop()
					s.ended.Wait()
				}
				if t.Failed() {
					t.Logf("seed %d", seed)
				}
			}()
			w.join()
			for range 300 {
				if len(w.rows) == 0 {
					w.join()
				}
				w.step()
				for _, s := range w.rows {
					if !slices.Contains(all, s) {
						all = append(all, s)
					}
				}
				w.check()
			}
			w.settle()
		})
		if t.Failed() {
			return
		}
	}
}

// P10: a reply that says that calls are free asks for the job that grants them.
func TestFreeCallsAreGranted(t *testing.T) {
	t.Parallel()
	proc, err := engine.New(&shareServer{}, engine.Env{}, engine.Settings{
		ThreadNumber: 1, FetchNumber: 1, ExecuteNumber: 1, SleepTimeNoData: time.Second, SleepTimeInterval: time.Millisecond, Retry: time.Second, RetryMax: time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	b := &base{proc: proc, agenda: &agenda{}}
	p := sharePart(b)
	for _, free := range []bool{false, true} {
		p.follow(heartbeatReply{HeartbeatReply: roster.HeartbeatReply{Share: roster.ShareReply{Due: free}}})
		if d, due := b.agenda.next(time.Now()); due != free || due && d != raiseShares {
			t.Errorf("calls are free: %t; duty %d is due: %t", free, d, due)
		}
	}
}
