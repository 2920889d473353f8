package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/ops/doctor"
)

// drill is a fault that begins when everything is at rest, and lasts until somebody is told of it by name: by an event,
// or by the doctor. A history has one drill, or none.
type drill struct {
	name   string
	within time.Duration // somebody is told
	told   []string      // kinds of alerts, findings and events; any one of them will do
	// begin begins the fault. It returns what the telling must name besides the task, or false: the fault is not possible.
	begin func(w *world, t *task) (subject string, possible bool)
	moves bool // the queues change their owners meanwhile
}

var drills = []drill{
	{
		"outage", 3 * time.Minute,
		[]string{condition.Failing.Name, condition.Outage.Name, condition.QueueFailing.Name, condition.DeadItems.Name},
		func(w *world, t *task) (string, bool) { return "", !t.inRuns() && w.setOut(t) }, false,
	},
	{
		"outage, with other owners", 5 * time.Minute,
		[]string{condition.Failing.Name, condition.Outage.Name, condition.QueueFailing.Name, condition.DeadItems.Name},
		func(w *world, t *task) (string, bool) { return "", !t.inRuns() && w.setOut(t) }, true,
	},
	{
		"poison", 3 * time.Minute,
		[]string{condition.DeadItems.Name},
		func(w *world, t *task) (string, bool) {
			return "", !t.inRuns() && t.dies() && w.addItems([]string{t.name, "1", fatePoison}) == nil
		}, false,
	},
	{
		"hang", 8 * time.Minute,
		[]string{condition.Stalled.Name, condition.Failing.Name, condition.Outage.Name, condition.DeadItems.Name},
		func(w *world, t *task) (string, bool) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.hung[t.name] = !t.inRuns()
			return "", !t.inRuns()
		}, false,
	},
	{
		"down", 2 * time.Minute,
		[]string{condition.Unreachable.Name},
		func(w *world, t *task) (string, bool) {
			all := t.databases()
			data := all[len(all)-1]
			if data == "" || t.inRuns() { // without a run nobody uses it
				return "", false
			}
			w.data[number(data[1:])].setDown(true)
			return data, true
		}, false,
	},
	{"dead", 2 * time.Minute, []string{"EXPIRED"}, func(w *world, t *task) (string, bool) { return w.halt(t, w.kill) }, false},
	{"frozen", 2 * time.Minute, []string{"EXPIRED"}, func(w *world, t *task) (string, bool) {
		return w.halt(t, func(p *process) { p.link.stop() })
	}, false},
	{"cut off", 2 * time.Minute, []string{"EXPIRED"}, func(w *world, t *task) (string, bool) {
		return w.halt(t, func(p *process) { p.link.set(trouble{cut: true}) })
	}, false},
}

func (w *world) setOut(t *task) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.out[t.name] = true
	return true
}

// halt halts a process of a task if there is another one. It returns the name of its server.
func (w *world) halt(t *task, how func(*process)) (server string, possible bool) {
	running := w.running(t.env)
	if len(running) < 2 {
		return "", false
	}
	p := running[int(w.h.seed/7)%len(running)]
	err := w.oracle.center.DB().QueryRowContext(w.t.Context(),
		`SELECT uuid FROM schedule_server WHERE task_type = ? AND name = ?`, t.name, p.name).Scan(&server)
	if err != nil {
		return "", false // another process may have the name, and this one waits
	}
	how(p)
	return server, true
}

// running returns the processes of an environment that run and have not been told to leave.
func (w *world) running(env string) (list []*process) {
	for _, p := range w.all {
		if p.env == env && p.alive.Load() && !p.left() {
			list = append(list, p)
		}
	}
	return list
}

// drill plays the drill of the history, for one of its tasks.
func (o *oracle) drill() error {
	rng := rand.New(rand.NewPCG(o.w.h.seed, 6))
	for _, n := range rng.Perm(len(drills)) {
		if begun, err := o.begin(drills[n], o.w.tasks[rng.IntN(len(o.w.tasks))]); begun || err != nil {
			return err
		}
	}
	return nil
}

// begin plays a drill for a task, and reports whether it was possible. An outage begins once more when it is over.
func (o *oracle) begin(d drill, t *task) (begun bool, err error) {
	begun, err = o.tell(d, t)
	if !begun || err != nil || d.name != "outage" || len(o.w.broken) > 0 {
		return begun, err
	}
	if err := o.rest(); err != nil || len(o.w.broken) > 0 {
		return true, err
	}
	return o.tell(d, t)
}

// tell begins the fault of a drill, and waits until somebody is told of it.
func (o *oracle) tell(d drill, t *task) (begun bool, err error) {
	var last string
	err = o.w.oracle.center.DB().QueryRowContext(o.w.t.Context(), `SELECT COALESCE(MAX(event_id), 0) FROM schedule_event`).Scan(&last)
	if err != nil {
		return false, err
	}
	subject, possible := d.begin(o.w, t)
	if !possible {
		return false, nil
	}
	o.w.note("drill: %s of %s %s", d.name, t.name, subject)
	for began, n := time.Now(), 0; time.Since(began) < d.within; time.Sleep(5 * time.Second) {
		if !t.inRuns() && (t.settings.Database == "" || d.name != "down") { // something to fail
			if err := o.w.addItems([]string{t.name, "2"}); err != nil {
				return true, err
			}
		}
		told, err := o.told(t, d.told, subject, last)
		if err != nil || told != "" {
			o.w.note("told: %s", told)
			return true, err
		}
		// An owner tells of an outage, or the next one knows what the queue has gone through, if it has the queue for a few
		// failed calls and half a minute.
		if n++; d.moves && n%(12+4*int(t.takes/time.Second)) == 0 {
			o.move(t.env)
		}
		if err := o.sample(); err != nil {
			return true, err
		}
	}
	o.w.breaks("told: %s of %s %s, and nobody is told of it within %s by %s", d.name, t.name, subject, d.within,
		strings.Join(d.told, ", "))
	return true, nil
}

// move lets one process leave, and another one come in its place.
func (o *oracle) move(env string) {
	p := o.w.running(env)[0]
	o.w.start(p.name + "2")
	p.leave()
}

// told returns what tells of one of some kinds of conditions of a task.
func (o *oracle) told(t *task, kinds []string, subject, last string) (text string, err error) {
	err = o.each(o.w.oracle.center.DB(), `SELECT COALESCE(alert, kind),
			reason || ' ' || COALESCE(subject, '') || ' ' || COALESCE(from_server, '') FROM schedule_event
		WHERE task_type = ? AND event_id > CAST(? AS INTEGER)`, func(kind, reason string) {
		if slices.Contains(kinds, kind) && strings.Contains(reason, subject) {
			text = fmt.Sprint("event ", kind, " ", reason)
		}
	}, t.name, last)
	if err != nil || text != "" {
		return text, err
	}
	ctx, cancel := context.WithTimeout(o.w.t.Context(), time.Minute)
	defer cancel()
	findings, err := doctor.Diagnose(ctx, o.w.ops[t.env], t.name)
	for _, f := range findings {
		if slices.Contains(kinds, f.Kind) && strings.Contains(f.Text, subject) {
			text = fmt.Sprint("finding ", f.Kind, " ", f.Text)
		}
	}
	return text, err
}

// explained reports whether a problem that the doctor finds at rest has a cause that lasts, or is known from an event
// that is younger than it lasts.
func (o *oracle) explained(f condition.Condition) bool {
	has := func(query string) bool {
		var n int
		return o.w.oracle.center.DB().QueryRowContext(o.w.t.Context(), query).Scan(&n) != nil || n > 0
	}
	switch f.Kind {
	case condition.DeadItems.Name, condition.Killer.Name:
		return has(`SELECT COUNT(*) FROM schedule_failed_item WHERE state = 'DEAD'`)
	case condition.RunFailed.Name:
		return has(`SELECT COUNT(*) FROM schedule_run WHERE state IN ('FAILED', 'DEPENDENT_FAILED')
			OR state = 'CANCELLED' AND failed_at IS NOT NULL`) // a rerun that was cancelled has not done the work
	case condition.SlotMissed.Name, condition.SlotSkipped.Name: // the oracle has paused the triggers
		return has(`SELECT COUNT(*) FROM schedule_trigger WHERE missed + skipped > 0`)
	case condition.HistoryLost.Name:
		return !o.lossAt.IsZero()
	}
	return slices.Contains(events, f.Kind)
}

// events are the kinds of problems that are known from an event for a day.
var events = []string{
	condition.Crashes.Name, condition.Refused.Name, condition.Unrecorded.Name, condition.Undiscarded.Name,
}

// restTime is how long the roster is watched at rest.
const restTime = time.Minute

// quiet checks what the processes send when they have nothing to do. A heartbeat has two statements; whatever else a
// process sends to the roster is far less than its selects.
func (o *oracle) quiet() error {
	before := map[*process]sent{}
	for _, p := range o.w.all {
		before[p] = p.link.sent()
	}
	time.Sleep(restTime)
	for env := range o.w.ops {
		interval := center.Settings{}.WithDefaults().HeartbeatInterval.Milliseconds()
		err := o.w.oracle.center.DB().QueryRowContext(o.w.t.Context(), `SELECT COALESCE(MIN(heartbeat_interval_ms), ?) FROM schedule_task_type
			WHERE task_type IN (SELECT task_type FROM schedule_server WHERE own_sign = ?)`, interval, signOf(env)).Scan(&interval)
		if err != nil {
			return err
		}
		for _, p := range o.w.running(env) {
			now, was := p.link.sent(), before[p]
			most := 2 * (restTime.Milliseconds()/interval + 1)
			if beats := now.beats - was.beats; int64(beats) > most {
				o.w.breaks("quiet: %s has sent %d statements of heartbeats in %s, at most %d are needed", p.name, beats, restTime, most)
			}
			if n := now.statistics - was.statistics; n > int(restTime/(10*time.Second))+1 {
				o.w.breaks("quiet: %s has written its statistics %d times in %s, once in 10 s is enough", p.name, n, restTime)
			}
			o.w.note("%s has sent %d statements of heartbeats and %d others to the roster in %s at rest", p.name,
				now.beats-was.beats, now.store-was.store, restTime)
		}
	}
	return nil
}

func signOf(env string) string {
	if env == "" {
		return center.DefaultOwnSign
	}
	return env
}

// slots lets the triggers fire for a while, and checks that none of their slots is forgotten.
func (o *oracle) slots() error {
	type trigger struct{ env, name, task string }
	var all []trigger
	db := o.w.oracle.center.DB()
	for env := range o.w.ops {
		err := o.each(db, `SELECT name, target FROM schedule_trigger WHERE own_sign = ? AND status = 'PAUSED' AND kind = 'EVERY'
			AND max_fires = 0 AND end_at IS NULL AND start_at < rota_now()`, func(name, task string) { all = append(all, trigger{env, name, task}) }, signOf(env))
		if err != nil {
			return err
		}
	}
	if len(all) == 0 {
		return nil
	}
	for _, t := range all {
		if _, err := o.w.operateIn(t.env, "trigger_resume", "trigger="+t.name); err != nil {
			return err
		}
	}
	if err := o.watch(90 * time.Second); err != nil { // an audit corrects times that the clock has made wrong
		return err
	}
	counts := map[trigger]int64{}
	count := func(t trigger) (n int64, err error) {
		err = db.QueryRowContext(o.w.t.Context(), `SELECT missed FROM schedule_trigger WHERE own_sign = ? AND name = ?`,
			signOf(t.env), t.name).Scan(&n)
		return n + o.fires[signOf(t.env)+" "+t.name+" "+t.task], err
	}
	for _, t := range all {
		n, err := count(t)
		if err != nil {
			return err
		}
		counts[t] = n
	}
	if err := o.watch(2 * restTime); err != nil {
		return err
	}
	for _, t := range all {
		n, err := count(t)
		if err != nil {
			return err
		}
		var expression string
		err = db.QueryRowContext(o.w.t.Context(), `SELECT expression FROM schedule_trigger WHERE own_sign = ? AND name = ?`,
			signOf(t.env), t.name).Scan(&expression)
		if err != nil {
			return err
		}
		every, err := time.ParseDuration(expression)
		if err != nil {
			return err
		}
		if want := int64(2*restTime/every) - 1; n-counts[t] < want {
			o.w.breaks("slots: in %s, trigger %s, every %s, has made or missed %d slots, want %d", 2*restTime, t.name, every, n-counts[t], want)
		}
	}
	return nil
}

// watch looks at the roster each second, because retention may soon delete a run. The items of a run may end all
// processes.
func (o *oracle) watch(long time.Duration) error {
	for range int(long / time.Second) {
		time.Sleep(time.Second)
		o.w.keepOne()
		if err := o.sample(); err != nil {
			return err
		}
	}
	return nil
}

// dies reports whether an item that always fails is soon dead, beside others that succeed.
func (t *task) dies() bool {
	return t.offers.Keyed && !t.offers.Cursored && t.settings.ItemMaxAttempts > 0 && t.settings.ItemRetryMax > 0
}
