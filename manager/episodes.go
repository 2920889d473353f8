package manager

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/condition"
)

// episodes tells the roster of the conditions that this server sees, and of their ends (S16). All sessions of a server
// share it. Only the server's own goroutine uses it, except counts.
type episodes struct {
	open   map[string]*episode // by the key of the condition
	due    []center.Condition  // to be told
	over   []pastEpisode       // to be told
	counts atomic.Pointer[map[string]int]
}

// episode is a condition that this server sees or was told of.
type episode struct {
	center.Condition
	toldAt time.Time // when the roster was last told
	by     source
	seen   bool // by the present look of its source
}

// source says how this server learns of a condition. The checks of heartbeats and the looks for problems of runs see it
// again for as long as it lasts, so that its end is noticed.
type source int

const (
	hearsay source = iota
	heartbeats
	runLooks
)

type pastEpisode struct {
	center.Condition
	endedAt time.Time
}

// tellEvery is the pause after which the roster is told again of a condition that lasts. It is shorter than any gap.
const tellEvery = time.Minute

func newEpisodes() *episodes {
	e := &episodes{open: map[string]*episode{}}
	e.counts.Store(&map[string]int{})
	return e
}

// see notes a condition.
func (e *episodes) see(c center.Condition, by source) {
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

// checked notes that a source has looked for all its conditions: those that it has not seen have ended. It forgets
// hearsay when it cannot last any more.
func (e *episodes) checked(by source) {
	counts := map[string]int{}
	for key, one := range e.open {
		switch {
		case one.by == hearsay && time.Since(one.toldAt) > condition.KindOf(one.Kind).Alert.Gap(0):
			delete(e.open, key)
			continue
		case one.by == hearsay || one.by != by:
		case !one.seen:
			e.over = append(e.over, pastEpisode{one.Condition, time.Now()})
			delete(e.open, key)
			continue
		default:
			one.seen = false
		}
		counts[one.Kind]++
	}
	e.counts.Store(&counts)
}

// nextJob returns the job that tells the roster what it has to know, or nil if that is nothing.
func (a *alerter) nextJob() *job {
	due, over, waits := a.episodes.due, a.episodes.over, a.waitsDue
	if len(due) == 0 && len(over) == 0 && !waits {
		return nil
	}
	a.episodes.due, a.episodes.over, a.waitsDue = nil, nil, false
	settings := *a.settings
	begins, errs := make([]bool, len(due)), make([]error, len(due))
	var owners []string
	return &job{
		name: "record alerts",
		call: func(ctx context.Context) (err error) {
			if waits {
				owners, err = a.awaited(ctx)
			}
			for _, c := range over {
				err = cmp.Or(err, a.roster.Roster().EndAlert(ctx, c.Condition, time.Since(c.endedAt)))
			}
			for i := range due {
				begins[i], errs[i] = a.tell(ctx, &due[i], settings)
			}
			return err
		},
		then: func(ctx context.Context, _ error) (more bool) {
			for _, w := range owners {
				a.log.LogAttrs(ctx, slog.LevelInfo, "waiting: "+w)
			}
			for i, c := range due {
				a.told(ctx, c, begins[i], errs[i])
			}
			return false
		},
	}
}

// tell tells the roster of a condition, and reports whether an episode begins with that. What only the roster knows it
// adds to the condition.
func (a *alerter) tell(ctx context.Context, c *center.Condition, settings Settings) (begins bool, err error) {
	switch c.Kind {
	case center.AlertFailing:
		c.Since, err = a.failingSince(ctx, c.Since)
	case center.AlertStandby:
		c.Text, err = a.standbyText(ctx, settings.MaxInFlight)
	}
	if err != nil {
		return false, err
	}
	return a.roster.Roster().Alert(ctx, *c, condition.KindOf(c.Kind).Alert.Gap(settings.HeartbeatInterval))
}

// told takes a new episode to the log and to the Alerter. A condition of which the roster could not be told is told when it is seen again.
func (a *alerter) told(ctx context.Context, c center.Condition, begins bool, err error) {
	if err != nil {
		a.log.LogAttrs(ctx, slog.LevelWarn, fmt.Sprintf("recording alert %s failed: %s", c.Kind, c.Text), slog.Any("error", err))
		if one := a.episodes.open[c.Key()]; one != nil {
			one.toldAt = time.Time{}
		}
		return
	}
	if !begins {
		return
	}
	attrs := []slog.Attr{slog.String("alert", c.Kind)}
	if c.Subject != "" {
		attrs = append(attrs, slog.String("subject", c.Subject))
	}
	a.logOf(c.TaskType).LogAttrs(ctx, slog.LevelWarn, c.Text, attrs...) // it need not be the task type that this server serves
	if a.cfg.Alerter != nil {
		a.cfg.Alerter.Alert(Alert{Condition: c, OwnSign: a.roster.OwnSign()})
	}
}
