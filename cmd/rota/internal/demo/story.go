package demo

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dutyrota/rota/internal/escape"
	"github.com/dutyrota/rota/internal/human"
	"github.com/dutyrota/rota/ops"
)

// story is what happens between the start of the first worker and the end of the last one.
type story struct {
	client *ops.Client
	events *ops.EventFollower
	out    io.Writer
	began  time.Time
	fleet  *fleet
}

// scene is one step of the story.
type scene struct {
	title string
	begin func() error
	ends  func(snapshot) bool
}

// tell plays the scenes and returns the evidence.
func (s *story) tell(ctx context.Context) ([]finding, error) {
	var moves []finding
	nothing := func() error { return nil }
	settled := func(percent int) func(snapshot) bool {
		return func(now snapshot) bool { return now.orders()*100 >= percent*orderCount }
	}
	kill := func() error {
		s.fleet.workers[1].kill()
		return nil
	}
	leave := func() (err error) {
		moves, err = ask(ctx, s.client.DB(), movesCheck) // before the workers leave: that moves queues too
		s.fleet.terminate()
		return err
	}
	for _, scene := range []scene{
		{fmt.Sprintf("%d workers start and share the queues", firstWorkers), s.start(firstWorkers), s.shared},
		{"they settle a quarter of the orders", nothing, settled(25)},
		{"worker 4 joins: queues move to it, one owner at a time", s.start(1), s.shared},
		{"4 workers settle half of the orders", nothing, settled(50)},
		{fmt.Sprintf("worker 2 is killed with SIGKILL: the others take over within %s", takeOverPromise), kill, s.shared},
		{"3 workers settle the rest", nothing, settled(100)},
		{"SIGTERM: the workers finish what is in flight and leave", leave, func(snapshot) bool { return s.fleet.ended() }},
	} {
		if err := s.play(ctx, scene); err != nil {
			return nil, fmt.Errorf("scene %q: %w", scene.title, err)
		}
	}
	findings, err := ask(ctx, s.client.DB(), ordersCheck, workersCheck)
	return append(findings, moves...), err
}

const (
	// ordersPerSecond is how many new orders there are in a second after the proof.
	ordersPerSecond = 400
	// leaveLimit is how long the workers may take to leave.
	leaveLimit = 30 * time.Second
)

// goOn lets workers settle new orders until the user ends it.
func (s *story) goOn(ctx context.Context) error {
	s.write("== workers go on with new orders, for the console: end it with Ctrl-C")
	if err := s.start(firstWorkers)(); err != nil {
		return err
	}
	for last := orderCount; ctx.Err() == nil; last += ordersPerSecond {
		if _, err := s.client.DB().ExecContext(ctx, moreOrders(last, ordersPerSecond)); err != nil && ctx.Err() == nil {
			return fmt.Errorf("make new orders: %w", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
	s.write("   the workers leave")
	s.fleet.terminate()
	enough := time.After(leaveLimit)
	for _, w := range s.fleet.workers {
		select {
		case <-w.gone:
		case <-enough: // the fleet is killed
			return nil
		}
	}
	return nil
}

func (s *story) start(n int) func() error {
	return func() error {
		for range n {
			w, err := s.fleet.start()
			if err != nil {
				return err
			}
			s.write(fmt.Sprintf("   %s started, pid %d", w, w.process.Pid))
		}
		return nil
	}
}

// lookInterval is the pause between two looks at the database.
const lookInterval = 200 * time.Millisecond

// play prints what goes on until the scene ends, or until a worker ends unexpectedly.
func (s *story) play(ctx context.Context, scene scene) error {
	s.write("== " + scene.title)
	if err := scene.begin(); err != nil {
		return err
	}
	for {
		now, err := s.look(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		ends := scene.ends(now)
		s.tellEvents(now.events)
		if ends {
			s.tellState(now)
		}
		if err := s.fleet.check(); err != nil || ends {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(lookInterval):
		}
	}
}

// shared reports whether each running worker owns its share of the queues, and no queue is about to move.
func (s *story) shared(now snapshot) bool {
	holds := map[*worker]int{}
	for _, q := range now.queues {
		w := s.fleet.of(value(q.CurServer))
		if w == nil || w.killed || q.Status != "HELD" {
			return false
		}
		holds[w]++
	}
	running := slices.DeleteFunc(slices.Clone(s.fleet.workers), func(w *worker) bool { return w.killed })
	tooFew := func(w *worker) bool { return holds[w] < queueCount/len(running) }
	return len(now.queues) == queueCount && !slices.ContainsFunc(running, tooFew)
}

// snapshot is what the tables hold at one moment.
type snapshot struct {
	queues  []ops.QueueRecord
	settled map[string]int    // orders by the uuid of the server
	events  []ops.EventRecord // that the last snapshot did not have
}

// look reads the tables.
func (s *story) look(ctx context.Context) (now snapshot, err error) {
	if now.queues, err = s.client.Queues().List(ctx, ops.QueueFilter{}); err != nil {
		return now, err
	}
	_, rows, err := read(ctx, s.client.DB(), `SELECT COALESCE(settled_by, ''), COUNT(*) FROM orders WHERE state = 'SETTLED'
		GROUP BY settled_by ORDER BY settled_by`)
	if err != nil {
		return now, fmt.Errorf("count the orders: %w", err)
	}
	now.settled = map[string]int{}
	for _, r := range rows {
		now.settled[r[0]], _ = strconv.Atoi(r[1]) // a COUNT is a number
	}
	now.events, err = s.events.Next(ctx)
	return now, err
}

// value returns what a column holds; empty if it is NULL.
func value(column *string) string {
	if column == nil {
		return ""
	}
	return *column
}

// orders returns the number of settled orders.
func (s snapshot) orders() (total int) {
	for _, n := range s.settled {
		total += n
	}
	return total
}

// write prints a line with the time since the demo began.
func (s *story) write(line string) {
	printf(s.out, "%5.1f s  %s\n", time.Since(s.began).Seconds(), escape.Text(line))
}

// tellEvents prints events. Neighbours that differ only in their queue share a line.
func (s *story) tellEvents(events []ops.EventRecord) {
	var lines []string
	for _, e := range events {
		if e.Kind == ops.EventRequested {
			continue // the release says the same
		}
		from, to := value(e.FromServer), value(e.ToServer)
		parties := s.fleet.name(from) + s.fleet.name(to)
		if from != "" && to != "" {
			parties = s.fleet.name(from) + " → " + s.fleet.name(to)
		}
		line := strings.TrimRight(fmt.Sprintf("   %-10s  %s  %s", e.Kind, parties, e.Reason), " ")
		if e.QueueID != nil {
			line = fmt.Sprintf("   %-10s  %s  queue", e.Kind, parties)
			if n := len(lines) - 1; n >= 0 && strings.HasPrefix(lines[n], line) {
				lines[n] += " " + *e.QueueID
				continue
			}
			line += " " + *e.QueueID
		}
		lines = append(lines, line)
	}
	for _, line := range lines {
		s.write(line)
	}
}

// tellState prints a line for each worker with its queues, one for the queues without an owner, and one for the
// progress.
func (s *story) tellState(now snapshot) {
	for _, w := range append(slices.Clone(s.fleet.workers), nil) {
		orders, queues := 0, ""
		for uuid, n := range now.settled {
			if s.fleet.of(uuid) == w {
				orders += n
			}
		}
		for _, q := range now.queues {
			if s.fleet.of(value(q.CurServer)) == w {
				queues += " " + q.QueueID
			}
		}
		if w != nil {
			printf(s.out, "         %s  %-11s %6s orders  queues%s\n", w, w.state(), human.Number(orders), queues)
		} else if queues != "" {
			printf(s.out, "         no owner: queues%s\n", queues)
		}
	}
	total := now.orders()
	printf(s.out, "         %d %%  %s of %s orders\n\n",
		total*100/orderCount, human.Number(total), human.Number(orderCount))
}
