package demo

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dutyrota/rota/internal/human"
)

// story is what happens between the start of the first worker and the end of the last one.
type story struct {
	db    *sql.DB
	out   io.Writer
	began time.Time
	fleet *fleet
	shown int // events that were printed
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
		moves, err = ask(ctx, s.db, movesCheck) // before the workers leave: that moves queues too
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
	findings, err := ask(ctx, s.db, ordersCheck, workersCheck)
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
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for last := orderCount; ctx.Err() == nil; last += ordersPerSecond {
		if _, err := s.db.ExecContext(ctx, moreOrders(last, ordersPerSecond)); err != nil && ctx.Err() == nil {
			return fmt.Errorf("make new orders: %w", err)
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
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
			s.write(fmt.Sprintf("   %s started, pid %d", w, w.pid))
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
		now, err := look(ctx, s.db)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		ends := scene.ends(now)
		s.tellEvents(now.events[s.shown:])
		s.shown = len(now.events)
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
		w := s.fleet.of(q.owner)
		if w == nil || w.killed || q.status != "HELD" {
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
	queues  []queue
	settled map[string]int // orders by the uuid of the server
	events  []event        // all, oldest first
}

// queue is a row of schedule_assignment.
type queue struct{ id, owner, status string }

// event is a row of schedule_event.
type event struct{ kind, queue, from, to, reason string }

// look reads the tables, as any user could.
func look(ctx context.Context, db querier) (s snapshot, err error) {
	const (
		queues  = `SELECT queue_id, COALESCE(cur_server, ''), status FROM schedule_assignment ORDER BY queue_id`
		settled = `SELECT COALESCE(settled_by, ''), COUNT(*) FROM orders WHERE state = 'SETTLED'
			GROUP BY settled_by ORDER BY settled_by`
		events = `SELECT kind, COALESCE(queue_id, ''), COALESCE(from_server, ''), COALESCE(to_server, ''), reason
			FROM schedule_event ORDER BY event_id`
	)
	var lists [3][][]string
	for i, query := range []string{queues, settled, events} {
		if _, lists[i], err = read(ctx, db, query); err != nil {
			return s, fmt.Errorf("%s: %w", query, err)
		}
	}
	for _, r := range lists[0] {
		s.queues = append(s.queues, queue{r[0], r[1], r[2]})
	}
	s.settled = map[string]int{}
	for _, r := range lists[1] {
		s.settled[r[0]], _ = strconv.Atoi(r[1]) // a COUNT is a number
	}
	for _, r := range lists[2] {
		s.events = append(s.events, event{r[0], r[1], r[2], r[3], r[4]})
	}
	return s, nil
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
	printf(s.out, "%5.1f s  %s\n", time.Since(s.began).Seconds(), line)
}

// tellEvents prints events. Neighbours that differ only in their queue share a line.
func (s *story) tellEvents(events []event) {
	var lines []string
	for _, e := range events {
		if e.kind == "REQUESTED" {
			continue // the release says the same
		}
		parties := s.fleet.name(e.from) + s.fleet.name(e.to)
		if e.from != "" && e.to != "" {
			parties = s.fleet.name(e.from) + " → " + s.fleet.name(e.to)
		}
		line := strings.TrimRight(fmt.Sprintf("   %-10s  %s  %s", e.kind, parties, e.reason), " ")
		if e.queue != "" {
			line = fmt.Sprintf("   %-10s  %s  queue", e.kind, parties)
			if n := len(lines) - 1; n >= 0 && strings.HasPrefix(lines[n], line) {
				lines[n] += " " + e.queue
				continue
			}
			line += " " + e.queue
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
			if s.fleet.of(q.owner) == w {
				queues += " " + q.id
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
