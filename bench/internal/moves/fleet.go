package moves

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/dutyrota/rota/bench/internal/stage"
)

// span is the time of one item.
type span struct {
	queue      int // the part of the split
	total      int // of the queue
	pid        int
	begin, end time.Time
}

// fleet is the worker processes on one database, with the items that they have done.
type fleet struct {
	ctx  context.Context
	db   *stage.Database
	o    Options
	all  []*worker
	mu   sync.Mutex
	done []span
}

// worker is one process.
type worker struct {
	name   string
	cmd    *exec.Cmd
	input  io.Closer
	gone   chan struct{} // closed when the process has ended and its output has been read
	err    error         // how the process ended; read it only after gone
	killed time.Time     // zero if it was not killed
}

// runs reports whether the process has not ended.
func (w *worker) runs() bool {
	select {
	case <-w.gone:
		return false
	default:
		return true
	}
}

// start starts a worker process.
func (c *fleet) start() (*worker, error) { return c.startAs("") }

// startAs starts a worker process, with a name if the workers have names.
func (c *fleet) startAs(name string) (*worker, error) {
	o := order{
		URL: c.db.URL, Settings: c.o.settings(), Item: c.o.Item, Fenced: c.o.fenced, Witness: c.o.witness, NoHints: c.o.noHints, Parts: c.o.parts,
	}
	if c.o.named {
		o.Name = name
	}
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	w := &worker{name: name, cmd: exec.CommandContext(c.ctx, program), gone: make(chan struct{})}
	w.cmd.Env, w.cmd.Stderr = append(os.Environ(), orderVariable+"="+string(text)), os.Stderr
	if w.input, err = w.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	output, err := w.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := w.cmd.Start(); err != nil {
		return nil, err
	}
	c.all = append(c.all, w)
	go func() {
		defer close(w.gone)
		c.listen(w.cmd.Process.Pid, output)
		w.err = w.cmd.Wait()
	}()
	return w, nil
}

// listen records the items of a worker until it has ended.
func (c *fleet) listen(pid int, output io.Reader) {
	for lines := bufio.NewScanner(output); lines.Scan(); {
		var queue, total int
		var begin, end int64
		if _, err := fmt.Sscan(lines.Text(), &queue, &total, &begin, &end); err != nil {
			continue // the kill has cut the line off
		}
		c.mu.Lock()
		c.done = append(c.done, span{queue, total, pid, time.Unix(0, begin), time.Unix(0, end)})
		c.mu.Unlock()
	}
}

// terminate asks a worker to leave and waits for its end.
func (c *fleet) terminate(w *worker) error {
	if err := w.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	if err := c.await(w); err != nil {
		return err
	}
	if w.err != nil {
		return fmt.Errorf("terminate worker %d: %w", w.cmd.Process.Pid, w.err)
	}
	return nil
}

func (c *fleet) kill(w *worker) error {
	w.killed = time.Now()
	if err := w.cmd.Process.Kill(); err != nil {
		return err
	}
	return c.await(w)
}

// await waits for the end of a worker.
func (c *fleet) await(w *worker) error {
	select {
	case <-w.gone:
		return nil
	case <-time.After(patience):
		return fmt.Errorf("worker %d still runs after %s", w.cmd.Process.Pid, patience)
	}
}

// dismiss ends all workers, also after a failure.
func (c *fleet) dismiss() {
	for _, w := range c.all {
		_ = w.input.Close() // the worker ends with its input
		_ = w.cmd.Process.Kill()
		<-w.gone
	}
}

// work lets the workers work for a time, and until an item of each queue is done. Otherwise the move of a queue would not
// show on a slow machine.
func (c *fleet) work(d time.Duration) error {
	begin := time.Now()
	for time.Sleep(d); ; time.Sleep(5 * time.Millisecond) {
		if n := c.queuesDone(begin); n == cmp.Or(c.o.parts, c.o.Queues) {
			return nil
		} else if time.Since(begin) > d+patience {
			return fmt.Errorf("only %d of %d queues were worked within %s", n, c.o.Queues, d+patience)
		}
	}
}

// queuesDone returns the number of queues with an item that began after the time and is done.
func (c *fleet) queuesDone(after time.Time) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	queues := map[int]bool{}
	for _, s := range c.done {
		if s.begin.After(after) {
			queues[s.queue] = true
		}
	}
	return len(queues)
}

// patience is the time limit for each step.
const patience = time.Minute

// settle waits until this number of workers share the queues evenly and no queue moves.
func (c *fleet) settle(workers int) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		held, err := c.held()
		if err != nil {
			return err
		}
		moving, err := c.db.Number(c.ctx, `SELECT COUNT(*) FROM schedule_assignment WHERE status <> 'HELD'`)
		if err != nil {
			return err
		}
		even := len(held) == workers
		for _, n := range held {
			even = even && n >= c.o.Queues/workers && n <= (c.o.Queues+workers-1)/workers
		}
		if even && moving == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("share the queues over %d workers: not within %s: %v, %d moving", workers, patience, held, moving)
		}
	}
}

// held returns the number of queues of each server.
func (c *fleet) held() (map[string]int, error) {
	rows, err := c.db.QueryContext(c.ctx, `SELECT s.uuid, COUNT(q.queue_id) FROM schedule_server s
		LEFT JOIN schedule_queue q ON q.cur_server = s.uuid GROUP BY s.uuid ORDER BY s.uuid`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	held := map[string]int{}
	for rows.Next() {
		var uuid string
		var n int
		if err := rows.Scan(&uuid, &n); err != nil {
			return nil, err
		}
		held[uuid] = n
	}
	return held, rows.Err()
}
