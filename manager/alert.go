package manager

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/internal/engine"
	"github.com/dutyrota/rota/internal/escape"
	"github.com/dutyrota/rota/internal/human"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/ops"
)

// Alert is the beginning of a condition that an operator should know (S16). It is also an event in schedule_event.
type Alert struct {
	condition.Condition // its task type need not be one that this process serves
	OwnSign             string
}

// Alerter takes alerts to people: to a pager, a chat, a metric. Servers call Alert in goroutines of their own, several
// at a time, and wait for it, so Alert must leave slow work to another goroutine. It is called once for a condition
// that lasts. It may be called twice if the database did not confirm the first record of the alert.
type Alerter interface {
	Alert(a Alert)
}

const (
	// standbyAlert is the number of judge_dead_intervals on standby after which a server raises an alert.
	standbyAlert = 6
	// waitLogEvery is the pause after which a server that waits for queues logs their owners again.
	waitLogEvery = 10 * time.Second
)

// alerter looks with every heartbeat for conditions that an operator should know. A job tells the roster of them.
type alerter struct {
	*base
	incoming <-chan condition.Condition // from the executors
	episodes *episodes
	waitsDue bool // owners that the server waits for are to be logged

	lastBusy     time.Time // when the server last had a queue, or could not have one
	progress     int64     // number of selects and items that have ended
	progressAt   time.Time // when progress last changed
	waitLoggedAt time.Time // zero while the server waits for no queue
}

// look looks for conditions after a heartbeat. restricted says that the server must not work on all of its queues now.
// The session calls looked when its parts have looked, too.
func (a *alerter) look(p roster.HeartbeatReply, restricted bool) {
	a.checkWaits(a.view.hasIncoming())
	for more := true; more; {
		select {
		case alert := <-a.incoming:
			a.report(alert)
		default:
			more = false
		}
	}
	a.checkStandby(p)
	a.checkProgress(p, restricted)
}

// looked ends the look for conditions, and has the roster told of them.
func (a *alerter) looked() {
	a.episodes.checked(heartbeats)
	a.agenda.add(time.Now(), tellAlerts)
}

// see notes a condition that a check of this heartbeat has found.
func (a *alerter) see(c condition.Condition) {
	c.TaskType = a.taskType
	a.episodes.see(c, heartbeats)
}

// report notes a condition that no check of a heartbeat sees: another part of the server reports it, once or seldom.
func (a *alerter) report(c condition.Condition) {
	c.TaskType = cmp.Or(c.TaskType, a.taskType)
	a.episodes.see(c, reported)
	a.agenda.add(time.Now(), tellAlerts)
}

// awaited returns the owners that the server waits for, for the log.
func (a *alerter) awaited(ctx context.Context) (owners []string, err error) {
	pending, err := a.own().PendingHandovers(ctx)
	for _, p := range pending {
		owners = append(owners, fmt.Sprint(p))
	}
	return owners, err
}

// checkStandby notes that this server has had no queue for long (S9). All servers of the task type share the condition.
func (a *alerter) checkStandby(p roster.HeartbeatReply) {
	if a.view.owned.Load() > 0 || a.view.hasIncoming() || p.State != ops.StateStandby || p.Paused {
		a.lastBusy = time.Now()
		return
	}
	if time.Since(a.lastBusy) >= standbyAlert*a.settings.JudgeDeadInterval {
		a.see(condition.Condition{Kind: condition.Standby.Name, Since: a.lastBusy})
	}
}

// standbyText says how many workers have no queue, and the settings that may be why.
func (a *alerter) standbyText(ctx context.Context, s Settings) (string, error) {
	servers, standby, queues, err := a.roster.Roster().Standby(ctx, a.taskType)
	why := []string{fmt.Sprintf("queues: %d", queues)}
	names := []string{"max_servers", "max_servers_per_host", "max_in_flight", "require"}
	for _, r := range s.Records() {
		if slices.Contains(names, r.Name) && r.Text != "0" && r.Text != "" {
			why = append(why, r.Name+": "+r.Text)
		}
	}
	return fmt.Sprintf("%d of %d workers stand by (%s)", standby, servers, strings.Join(why, ", ")), err
}

// checkStalled notes calls of the dealer that do not end. It is not asked where the alert FAILING names them.
func (a *alerter) checkStalled() {
	for _, stall := range a.proc.Stalled(a.settings.StallAfter) {
		a.see(condition.Condition{
			Kind: condition.Stalled.Name, Since: stall.Since, Server: a.uuid, QueueID: stall.Queues[0], Text: stallText(stall),
		})
	}
}

func stallText(stall engine.Stall) string {
	names := make([]string, len(stall.Queues))
	for i, id := range stall.Queues {
		names[i] = escape.Name(id)
	}
	what := "execute of " + human.Count(stall.Items, "item", "items")
	if stall.Select {
		what = "select"
	}
	return fmt.Sprintf("%s of queue %s has been running for %s", what, strings.Join(names, ", "),
		time.Since(stall.Since).Round(time.Second))
}

// checkProgress notes that a server that may work has called its dealer for nothing for long. A call that runs for long
// is a condition of its own: STALLED.
func (a *alerter) checkProgress(p roster.HeartbeatReply, restricted bool) {
	stats := a.proc.Stats()
	done := stats.FetchCount + stats.PeekCount + stats.SuccessCount + stats.FailureCount
	calls := done != a.progress || !stats.OldestCallSince.IsZero()
	if calls || a.view.owned.Load() == 0 || restricted || a.inRuns() {
		a.progress, a.progressAt = done, time.Now()
		return
	}
	patience := max(a.settings.StallAfter, 2*(a.proc.PollPause()+a.settings.SleepTimeInterval))
	if idle := time.Since(a.progressAt); idle > patience {
		text := fmt.Sprintf("nothing selected or executed for %s (queues: %d)", idle.Round(time.Second), a.view.owned.Load())
		if p.Share.Granted == 0 {
			text += ": other workers have all calls of max_in_flight in flight"
		}
		a.see(condition.Condition{Kind: condition.NoFetch.Name, Since: a.progressAt, Server: a.uuid, Text: text})
	}
}

// checkWaits decides whether to log the owners that the server waits for: first when it has waited for longer than a
// hand-over takes, and then at intervals.
func (a *alerter) checkWaits(waiting bool) {
	switch {
	case !waiting:
		a.waitLoggedAt = time.Time{}
	case a.waitLoggedAt.IsZero():
		a.waitLoggedAt = time.Now().Add(2*a.settings.HeartbeatInterval - waitLogEvery)
	case time.Since(a.waitLoggedAt) >= waitLogEvery:
		a.waitLoggedAt = time.Now()
		a.waitsDue = true
	}
}

// episodes tells the roster of the conditions that this server sees, and of their ends (S16). All sessions of a server
// share it. Only the server's own goroutine uses it, except seen.
type episodes struct {
	open    map[string]*episode                   // by the key of the condition
	due     []condition.Condition                 // to be told
	over    []pastEpisode                         // to be told
	telling []condition.Condition                 // by the job that runs now
	seen    atomic.Pointer[[]condition.Condition] // the open ones, for Conditions
}

// episode is a condition that this server sees or was told of.
type episode struct {
	condition.Condition
	toldAt time.Time // when the roster was last told
	by     source
	seen   bool // since its source last looked for all its conditions
}

// source says how this server learns of a condition. The checks of heartbeats and the looks for problems of runs see it
// again for as long as it lasts, so that its end is noticed.
type source int

const (
	reported source = iota
	heartbeats
	runLooks
)

type pastEpisode struct {
	condition.Condition
	endedAt time.Time
}

// tellEvery is the pause after which the roster is told again of a condition that lasts. It is shorter than any gap.
const tellEvery = time.Minute

func newEpisodes() *episodes {
	e := &episodes{open: map[string]*episode{}}
	e.seen.Store(&[]condition.Condition{})
	return e
}

// see notes a condition.
func (e *episodes) see(c condition.Condition, by source) {
	c = c.Complete()
	one := e.open[c.Key()]
	if one == nil {
		one = &episode{}
		e.open[c.Key()] = one
	}
	one.Condition, one.by, one.seen = c, by, true
	if time.Since(one.toldAt) >= tellEvery {
		one.toldAt = time.Now()
		e.due = append(e.due, c)
	}
}

// checked notes that a source has looked for all its conditions. A condition that it has not seen has ended. checked
// forgets a reported condition when so much time has passed that another report would begin a new episode. Nobody sees
// that condition again, so the roster is told once more if it could not be told.
func (e *episodes) checked(by source) {
	var seen []condition.Condition
	for key, one := range e.open {
		switch {
		case one.by == reported && one.toldAt.IsZero():
			e.see(one.Condition, reported)
		case one.by == reported && time.Since(one.toldAt) > condition.KindOf(one.Kind).Alert.Gap(0):
			delete(e.open, key)
			continue
		case one.by == reported || one.by != by:
		case !one.seen:
			e.over = append(e.over, pastEpisode{one.Condition, time.Now()})
			delete(e.open, key)
			continue
		default:
			one.seen = false
		}
		seen = append(seen, one.Condition)
	}
	e.seen.Store(&seen)
}

// end ends the conditions of a kind, which this process knows to be over.
func (e *episodes) end(k condition.Kind) {
	for key, one := range e.open {
		if one.Kind == k.Name {
			e.over = append(e.over, pastEpisode{one.Condition, time.Now()})
			delete(e.open, key)
		}
	}
}

// begin begins a session. The job of the session before may not have ended, so what it was to tell is told again.
func (e *episodes) begin() *episodes {
	for _, c := range e.telling {
		e.untold(c)
	}
	e.telling = nil
	return e
}

// untold notes that the roster could not be told of a condition. One that is over at once may be forgotten already.
func (e *episodes) untold(c condition.Condition) {
	one := e.open[c.Key()]
	if one == nil && condition.KindOf(c.Kind).Alert == condition.Each {
		one = &episode{Condition: c, by: reported}
		e.open[c.Key()] = one
	}
	if one != nil {
		one.toldAt = time.Time{}
	}
}

// tellRoster returns the job that tells the roster what it has to know, or nil if that is nothing.
func (a *alerter) tellRoster() *job {
	due, over, waits := a.episodes.due, a.episodes.over, a.waitsDue
	if len(due) == 0 && len(over) == 0 && !waits {
		return nil
	}
	a.episodes.due, a.episodes.over, a.waitsDue = nil, nil, false
	a.episodes.telling = slices.Clone(due) // the job changes due
	settings := *a.settings
	errs := make([]error, len(due))
	var untoldEnds []pastEpisode
	var owners []string
	return &job{
		name: "record alerts",
		call: func(ctx context.Context) (err error) {
			if waits {
				owners, err = a.awaited(ctx)
			}
			lasts := map[string]error{} // in the roster, by the keys of the conditions, although it has ended
			for _, c := range over {
				if e := a.roster.Roster().EndAlert(ctx, c.Condition, time.Since(c.endedAt)); e != nil {
					untoldEnds, lasts[c.Key()], err = append(untoldEnds, c), e, cmp.Or(err, e)
				}
			}
			for i := range due {
				if errs[i] = lasts[due[i].Key()]; errs[i] == nil {
					errs[i] = a.tell(ctx, &due[i], settings)
				}
			}
			return err
		},
		then: func(ctx context.Context, _ error) (more bool) {
			a.episodes.telling = nil
			a.episodes.over = append(untoldEnds, a.episodes.over...)
			for _, w := range owners {
				a.log.LogAttrs(ctx, slog.LevelInfo, "waiting: "+w)
			}
			for i, c := range due {
				a.told(ctx, c, errs[i])
			}
			return false
		},
	}
}

// tell tells the roster of a condition, and raises an alert if an episode begins with that. It adds to the condition
// what only the roster knows. It does not wait for the session, which may end meanwhile: the next session finds the
// event, and takes the alert for raised.
func (a *alerter) tell(ctx context.Context, c *condition.Condition, settings Settings) (err error) {
	switch c.Kind {
	case condition.Failing.Name:
		c.Since, err = a.failingSince(ctx, c.Since)
	case condition.Standby.Name:
		c.Text, err = a.standbyText(ctx, settings)
	}
	c.Text = a.cfg.Redact(c.Text)
	if err != nil {
		return err
	}
	begins, err := a.roster.Roster().Alert(ctx, *c, condition.KindOf(c.Kind).Alert.Gap(settings.HeartbeatInterval))
	if begins {
		a.raise(ctx, *c)
	}
	return err
}

// told notes the outcome of tell. If the roster could not be told of the condition, the next look tries again.
func (a *alerter) told(ctx context.Context, c condition.Condition, err error) {
	if err != nil {
		a.log.LogAttrs(ctx, slog.LevelWarn, fmt.Sprintf("recording alert %s failed: %s", c.Kind, c.Text),
			slog.Any("error", err))
		a.episodes.untold(c)
	}
}

// raise takes a new episode to the log and to the Alerter. Any goroutine may call it.
func (a *alerter) raise(ctx context.Context, c condition.Condition) {
	attrs := []slog.Attr{slog.String("alert", c.Kind)}
	if c.Subject != "" {
		attrs = append(attrs, slog.String("subject", c.Subject))
	}
	a.logOf(c.TaskType).LogAttrs(ctx, slog.LevelWarn, c.Text,
		attrs...) // it need not be the task type that this server serves
	if a.cfg.Alerter != nil {
		c.Hint = ops.New(a.roster).CommandLines(c.Hint)
		a.cfg.Alerter.Alert(Alert{Condition: c, OwnSign: a.roster.OwnSign()})
	}
}
