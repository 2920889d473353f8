package demo

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/dutyrota/rota/cmd/rota/internal/cli"
	"github.com/dutyrota/rota/internal/human"
	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/ops"
)

// story is what happens between the start of the first worker and the end of the last one.
type story struct {
	client  *ops.Client
	db      *database
	events  *ops.EventFollower
	printed int64 // the id of the last event that was printed
	out     io.Writer
	began   time.Time

	program, folder string    // of the workers
	workers         []*worker // in the order of their numbers
	running         sync.WaitGroup
}

// scene is one step of the story. It is done when so many workers share the queues, and have settled that part of the
// orders.
type scene struct {
	title            string
	begin            func()
	workers, percent int
}

// tell plays the scenes. It returns the id of the last event before the workers leave, or the error of a worker that
// ends unexpectedly.
func (s *story) tell(ctx context.Context) (lastEvent int64, err error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	working, leave := context.WithCancel(ctx)
	defer leave()
	start := func(n int) func() {
		return func() {
			if err := s.start(working, n, fail); err != nil {
				fail(err)
			}
		}
	}
	end := func() {
		lastEvent = s.printed
		leave()
		s.running.Wait()
	}
	for _, scene := range []scene{
		{"3 workers start, share the queues and settle a quarter of the orders", start(3), 3, 25},
		{"worker 4 joins and gets queues; the 4 settle half of the orders", start(1), 4, 50},
		{"worker 2 is killed with SIGKILL: the others take over", func() { s.workers[1].kill() }, 3, 0},
		{"3 workers settle the rest", func() {}, 3, 100},
		{"SIGTERM: the workers finish what is in flight and leave", end, 0, 100},
	} {
		if err := s.play(ctx, scene); err != nil {
			return 0, fmt.Errorf("scene %q: %w", scene.title, err)
		}
	}
	return lastEvent, nil
}

// isDone counts a killed worker until the others evict it.
func (c scene) isDone(servers []ops.ServerRecord, settled int) bool {
	if len(servers) != c.workers {
		return false
	}
	unowned := queueCount
	for _, s := range servers {
		if s.Queues < int64(queueCount/c.workers) || s.Requested > 0 {
			return false
		}
		unowned -= int(s.Queues)
	}
	return (unowned == 0 || c.workers == 0) && settled*100 >= c.percent*orderCount
}

// ordersPerSecond is how many new orders there are in a second after the proof.
const ordersPerSecond = 400

// goOn lets workers settle new orders until the user ends it. The user may kill workers too.
func (s *story) goOn(ctx context.Context) error {
	working, leave := context.WithCancel(ctx)
	defer leave()
	printf(s.out, "\n")
	s.write("== workers go on with new orders, for the console: end it with Ctrl-C")
	if err := s.start(working, 3, func(error) {}); err != nil {
		return err
	}
	for last := orderCount; ; last += ordersPerSecond {
		_, err := s.db.ExecContext(ctx, moreOrders(last, ordersPerSecond))
		if ctx.Err() != nil {
			s.write("   the workers leave")
			return nil
		}
		if err != nil {
			return fmt.Errorf("make new orders: %w", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// play lets a scene begin, waits until it is done, and prints what has happened.
func (s *story) play(ctx context.Context, c scene) error {
	s.write("== " + c.title)
	c.begin()
	for {
		done, err := s.look(ctx, c)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// look reports whether a scene is done. If it is, look prints its events, the workers and the progress.
func (s *story) look(ctx context.Context, c scene) (done bool, err error) {
	servers, err := s.client.Servers().List(ctx, ops.ServerFilter{})
	if err != nil {
		return false, err
	}
	n, err := sqldb.Value[int](ctx, s.db, `SELECT COUNT(*) FROM orders WHERE state = 'SETTLED'`)
	if err != nil || !c.isDone(servers, n) {
		return false, err
	}
	events, err := s.events.Next(ctx)
	if err != nil {
		return false, err
	}
	screen := cli.ScreenOf(s.out)
	if len(events) > 0 {
		s.printed = events[len(events)-1].EventID
		printf(s.out, "\n%s\n", cli.Render(screen, events, s.eventRow))
	}
	if len(servers) > 0 {
		printf(s.out, "\n%s\n", cli.Render(screen, servers, s.serverRow))
	}
	printf(s.out, "\n %d %%: %s of %s orders are settled\n\n", n*100/orderCount, human.Number(n), human.Number(orderCount))
	return true, nil
}

func (s *story) eventRow(e ops.EventRecord) cli.Row {
	return cli.Row{
		cli.State("EVENT", e.Kind),
		cli.Maybe("QUEUE", e.QueueID),
		cli.Text("FROM", s.name(cli.OrDash(e.FromServer))),
		cli.Text("TO", s.name(cli.OrDash(e.ToServer))),
		cli.Maybe("EPOCH", e.Epoch).Right(),
		cli.Long("REASON", e.Reason),
	}
}

func (s *story) serverRow(r ops.ServerRecord) cli.Row {
	return cli.Row{
		cli.Text("WORKER", s.name(r.UUID)),
		cli.State("STATE", r.DisplayState()),
		cli.Age("HEARTBEAT", &r.HeartbeatAge),
		cli.Figure("QUEUES", r.Queues),
	}
}

// write prints a line with the time since the demo began.
func (s *story) write(line string) {
	printf(s.out, "%5.1f s  %s\n", time.Since(s.began).Seconds(), line)
}
