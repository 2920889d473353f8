package manager

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime/debug"
	"time"

	"github.com/google/uuid"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/engine"
	"github.com/dutyrota/rota/internal/roster"
)

// base holds what all parts of a server share. Each session has a copy with what is its own.
type base struct {
	taskType    string
	roster      *center.Center
	proc        *engine.Processor // one for all sessions, so that a queue whose batch hangs is not granted again
	settings    *Settings         // in force; only the server's own goroutine uses them
	cfg         Config
	log         *slog.Logger
	heartbeater *heartbeater
	witness     *witnessing
	hearing     *hearing
	auditing    chan struct{} // held by the server of the process that audits

	// Of the session; empty before the first one.
	uuid    string
	reg     *registration
	view    *ownView
	agenda  *agenda
	alerter *alerter
}

// own returns what the roster does for the server of this session.
func (b *base) own() roster.Server { return b.roster.Roster().Server(b.taskType, b.uuid) }

// ownPlanner returns what the roster plans in the name of this session's server.
func (b *base) ownPlanner() roster.Planner { return b.roster.Roster().Planner(b.taskType, b.uuid) }

// withTimeout returns the context for a call of the roster. The call has a dozen statements, and over a slow link each
// takes up to a sixth of judge_dead_interval. The end of a lease does not wait for it. The signal to leave does not
// interrupt it, because its outcome would be unknown.
func (b *base) withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 3*max(b.settings.JudgeDeadInterval, 10*time.Second))
}

// withReadTimeout returns the context for a call with a single statement, for which the session's goroutine waits.
func (b *base) withReadTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), max(b.settings.JudgeDeadInterval, 5*time.Second))
}

// slowestRoundTrip is the longest round trip to the database with which a server joins: a heartbeat has two, and must
// renew the lease twice as fast as the lease expires.
func (b *base) slowestRoundTrip() time.Duration { return b.settings.JudgeDeadInterval / 6 }

// inRuns reports whether queues are worked for runs, not because they are owned. The mode of a process never changes.
func (b *base) inRuns() bool { return b.settings.Mode == center.ModeRun }

// logOf returns the logger for lines about a task type, which need not be the one that the server serves.
func (b *base) logOf(taskType string) *slog.Logger {
	log := b.cfg.Logger.With(slog.String("task_type", taskType), slog.String("own_sign", b.roster.OwnSign()))
	if b.uuid == "" {
		return log
	}
	return log.With(slog.String("server", b.uuid))
}

// moved tells the observers that this server got or lost a queue.
func (b *base) moved(kind, queue string, epoch int64) {
	b.observeMove(Move{Kind: kind, Queue: queue, Epoch: epoch})
}

// observeMove completes a move and tells the observers.
func (b *base) observeMove(m Move) {
	m.TaskType, m.OwnSign, m.Server = b.taskType, b.roster.OwnSign(), b.uuid
	for _, o := range b.cfg.Observers {
		o.Moved(m)
	}
}

// logInternal logs an error that only a defect of this package can cause.
func (b *base) logInternal(ctx context.Context, err error) {
	if err != nil {
		b.log.LogAttrs(ctx, slog.LevelError, "internal error", slog.Any("error", err))
	}
}

// offer sends a value unless the channel is full, and reports whether it did.
func offer[T any](ch chan<- T, v T) bool {
	select {
	case ch <- v:
		return true
	default:
		return false
	}
}

// atOnce is the shortest duration of a timer. Go 1.26 runs a timer without a duration in the goroutine that sets it if
// a test runs in a bubble, and two of them at a time crash the race detector.
const atOnce = time.Nanosecond

// sleep waits for d, or until ctx is done.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(max(atOnce, d))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// newUUID returns an id that people can read in a SELECT: the host, the process ID and eight random digits.
func newUUID(host string) string {
	id := uuid.New()
	return fmt.Sprintf("%.100s:%d:%x", host, os.Getpid(), id[12:])
}

// hostIP returns an address that tells operators which host this is, or "".
func hostIP() string {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return ""
	}
	for _, a := range addrs {
		if ip, ok := a.(*net.IPNet); ok && !ip.IP.IsLoopback() && ip.IP.To4() != nil {
			return ip.IP.String()
		}
	}
	return ""
}

func hostName() string {
	name, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return name
}

// libraryVersion returns the version of this module in the running program.
func libraryVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == "github.com/dutyrota/rota" {
			return m.Version
		}
	}
	return ""
}

// retryLine logs the failures of a step that a server repeats until it succeeds. It logs the first failure at once.
// From then on it logs one line per minute, with the number of failures since the last line and the last failure as an
// example. An outage of an hour is sixty lines. The processor logs its calls in the same way. Only one goroutine uses a
// retryLine.
type retryLine struct {
	log   *slog.Logger
	text  string
	at    time.Time // of the last line; zero before the first
	count int       // failures since
	err   error     // of the last failure
}

// retryLineEvery is the pause between two lines.
const retryLineEvery = time.Minute

// failed logs a failure, or counts it.
func (r *retryLine) failed(ctx context.Context, err error) {
	r.err = err
	if r.at.IsZero() {
		r.at = time.Now()
		r.log.LogAttrs(ctx, slog.LevelWarn, r.text, slog.Any("error", err))
		return
	}
	r.count++
	if time.Since(r.at) >= retryLineEvery {
		r.flush(ctx)
	}
}

// flush logs the failures that it has counted and not logged yet.
func (r *retryLine) flush(ctx context.Context) {
	if r.count > 0 {
		r.log.LogAttrs(ctx, slog.LevelWarn, r.text, slog.Any("error", r.err), slog.Int("count", r.count))
		r.at, r.count = time.Now(), 0
	}
}
