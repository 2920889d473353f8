package sim

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// exercise is what a process or an operator does on a usual day. It begins when everything is at rest, and nothing
// disturbs it, so that it takes seconds: a mechanism that has another one behind it, such as an audit, shows itself only
// by that. A history has a few.
type exercise struct {
	name string
	play func(e *exertion) error
}

var exercises = []exercise{
	{"join", (*exertion).join},
	{"leave", (*exertion).leave},
	{"kill", (*exertion).kill},
	{"resize", (*exertion).resize},
	{"withdraw", (*exertion).withdraw},
	{"split", (*exertion).split},
	{"pause", (*exertion).pause},
	{"work", (*exertion).work},
	{"flood", (*exertion).flood},
	{"submit", (*exertion).submit},
	{"deadline", (*exertion).deadline},
	{"backfill", (*exertion).backfill},
	{"cut", (*exertion).cut},
	{"come back", (*exertion).comeBack},
	{"refuse", (*exertion).refuse},
}

// exertion is an exercise under way: for a task, in its environment.
type exertion struct {
	*oracle
	rng   *rand.Rand
	task  *task
	name  string
	began bool // something was done: the exercise was possible
}

// exercise plays some exercises, for tasks of the history. The run of one may meet an item that waits to end its process.
func (o *oracle) exercise() error {
	o.w.calm.Store(true)
	rng, left := rand.New(rand.NewPCG(o.w.h.seed, 4)), 4
	for _, n := range rng.Perm(len(exercises)) {
		x := exercises[n]
		for _, k := range rng.Perm(len(o.w.tasks)) {
			e := &exertion{oracle: o, rng: rng, task: o.w.tasks[k], name: x.name}
			if err := x.play(e); err != nil || len(o.w.broken) > 0 {
				return err
			}
			if !e.began {
				continue
			}
			if left--; left == 0 {
				return nil
			}
			break
		}
	}
	return nil
}

// fallBack lets the database fall back at rest, and lose a few changes of owners. The loss is noticed with a heartbeat,
// and the plans of all tasks raise their epochs at once (H7, H8).
func (o *oracle) fallBack() error {
	e := &exertion{oracle: o, task: o.w.tasks[0], name: "loss"}
	beat, err := e.beat()
	if err != nil || !o.w.lossAt.IsZero() || len(e.others()) == 0 {
		return err
	}
	if err := o.w.take(step{words: []string{"backup"}}); err != nil {
		return err
	}
	if e.w.process(e.newName()) == nil {
		e.w.start(e.newName())
	}
	if err := o.watch(4*beat + 2*time.Second); err != nil {
		return err
	}
	if err := o.w.take(step{words: []string{"restore"}}); err != nil || len(o.w.recorder.witnesses) == 0 {
		return err
	}
	return e.soon("noticed", 3*beat/2+2*time.Second, func() (string, error) {
		list, err := o.w.recorder.unrest()
		return strings.Join(list, ", "), err
	})
}

// beat is the longest interval of the heartbeats of the servers in the environment, and work the longest that a batch
// takes.
func (e *exertion) beat() (beat time.Duration, err error) {
	var ms int64
	err = e.w.oracle.center.DB().QueryRowContext(e.w.t.Context(), `SELECT MAX(heartbeat_interval_ms) FROM schedule_task_type
		WHERE task_type IN (SELECT task_type FROM schedule_server WHERE own_sign = ?)`, signOf(e.task.env)).Scan(&ms)
	return time.Duration(ms) * time.Millisecond, err
}

// limit is within what the queues change their owners: the heartbeats tell the owners, and their batches end.
func (e *exertion) limit() (beat, limit time.Duration, err error) {
	if beat, err = e.beat(); err != nil {
		return 0, 0, err
	}
	long := time.Duration(0)
	for _, t := range e.w.tasks {
		if t.env == e.task.env {
			long = max(long, t.takes*11/10)
		}
	}
	return beat, 2*beat + long + time.Second/2, nil
}

// patience is the longest time for which a server of the environment may be silent.
func (e *exertion) patience() (long time.Duration, err error) {
	var ms int64
	err = e.w.oracle.center.DB().QueryRowContext(e.w.t.Context(), `SELECT MAX(judge_dead_interval_ms) FROM schedule_server
		WHERE own_sign = ?`, signOf(e.task.env)).Scan(&ms)
	return time.Duration(ms) * time.Millisecond, err
}

// soon waits until something is so. It must be within the limit.
func (e *exertion) soon(what string, limit time.Duration, met func() (string, error)) error {
	e.began = true
	for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		left, err := met()
		took := time.Since(began).Round(time.Millisecond)
		if err != nil || left == "" {
			e.w.note("exercise: %s of %s: %s after %s of %s", e.name, e.task.name, what, took, limit)
			return err
		}
		if took > limit {
			e.w.breaks("soon: %s of %s: not %s after %s: %s", e.name, e.task.name, what, limit, left)
			return nil
		}
		if err := e.sample(); err != nil {
			return err
		}
	}
}

// settled says what is under way among the queues of the environment, and which plan is due.
func (e *exertion) settled() (left string, err error) {
	db, env := e.w.oracle.center.DB(), signOf(e.task.env)
	err = e.each(db, `SELECT task_type, queue_id || ' has ' || COALESCE(cur_server, 'no owner')
			|| CASE WHEN req_server IS NULL THEN '' ELSE ' and a requester' END
		FROM schedule_queue q WHERE own_sign = ? AND (cur_server IS NULL OR req_server IS NOT NULL
			OR NOT EXISTS (SELECT 1 FROM schedule_server s WHERE s.uuid = q.cur_server)) ORDER BY 1, 2`, func(task, text string) {
		left = fmt.Sprint("queue ", task, " ", text)
	}, env)
	if err != nil || left != "" {
		return left, err
	}
	err = e.each(db, `SELECT task_type, COALESCE('the change ' || queue_changes, 'a plan') FROM schedule_task_running
		WHERE own_sign = ? AND (queue_changes IS NOT NULL OR planned_version <> membership_version)`, func(task, text string) {
		left = fmt.Sprint(text, " of ", task, " is due")
	}, env)
	return left, err
}

// moves waits until the queues have come to rest. A server that has requested a queue selects at once when the owner
// gives it: it has looked for that (S8).
func (e *exertion) moves(what string, limit time.Duration, met func() (string, error)) error {
	e.w.recorder.handed = map[string]handOver{}
	if err := e.soon(what, limit, met); err != nil || len(e.w.broken) > 0 {
		return err
	}
	if err := e.watch(3 * time.Second); err != nil {
		return err
	}
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	for _, h := range e.w.recorder.handed {
		at, selected := e.w.selected[h.key]
		t := e.w.taskNamed(h.task)
		if late := at.Sub(h.at); t.eager() && (!selected || late > time.Second/2) {
			e.w.breaksLocked("prompt: %s is selected %s after it was handed over", h.key, late)
		}
	}
	return nil
}

// eager reports whether a queue of the task is selected as soon as it is there.
func (t *task) eager() bool {
	return !t.inRuns() && !t.offers.SetSelector && !t.peeks && !slices.ContainsFunc(t.words, func(w string) bool {
		return strings.HasPrefix(w, "permit_") || strings.HasPrefix(w, "hinted") || strings.HasPrefix(w, "queue_rate") || strings.HasPrefix(w, "rate")
	})
}

// others returns the processes of the environment that run.
func (e *exertion) others() []*process { return e.w.running(e.task.env) }

// oneOfMany draws one of the processes of the environment, and returns within what the others have its queues. Nil: it is
// the only one.
func (e *exertion) oneOfMany() (p *process, limit time.Duration, err error) {
	all := e.others()
	if len(all) < 2 {
		return nil, 0, nil
	}
	_, limit, err = e.limit()
	return all[e.rng.IntN(len(all))], limit, err
}

// newName returns a name that no process has.
func (e *exertion) newName() string {
	if e.task.env != "" {
		return "o"
	}
	return "k"
}

// join starts a process. It serves all tasks, and its queues come to it.
func (e *exertion) join() error {
	_, limit, err := e.limit()
	if err != nil || e.w.process(e.newName()) != nil {
		return err
	}
	e.w.start(e.newName())
	var n int
	err = e.soon("heard", 1500*time.Millisecond, func() (string, error) { // a server sends a heartbeat when it joins (S1)
		err := e.w.oracle.center.DB().QueryRowContext(e.w.t.Context(), `SELECT COUNT(*) FROM schedule_server
			WHERE name = ? AND beat_count > 0`, e.newName()).Scan(&n)
		if n > 0 {
			return "", err
		}
		return "no heartbeat has come", err
	})
	if err != nil || len(e.w.broken) > 0 {
		return err
	}
	return e.moves("divided", limit, func() (string, error) {
		for _, t := range e.w.tasks {
			err := e.w.oracle.center.DB().QueryRowContext(e.w.t.Context(), `SELECT COUNT(*) FROM schedule_server
				WHERE task_type = ? AND name = ?`, t.name, e.newName()).Scan(&n)
			if t.env == e.task.env && n == 0 || err != nil {
				return t.name + " is not served", err
			}
		}
		return e.settled()
	})
}

// leave tells a process to leave.
func (e *exertion) leave() error {
	p, limit, err := e.oneOfMany()
	if p == nil || err != nil {
		return err
	}
	p.leave()
	return e.soon("left", limit+e.w.h.returns+time.Second, func() (string, error) {
		if p.alive.Load() {
			return p.name + " is still there", nil
		}
		return e.settled()
	})
}

// kill ends a process. Its queues go to the others.
func (e *exertion) kill() error {
	p, limit, err := e.oneOfMany()
	if p == nil || err != nil {
		return err
	}
	patience, err := e.patience()
	if err != nil {
		return err
	}
	e.w.kill(p)
	return e.soon("replaced", patience*3/2+limit, func() (string, error) {
		var n int
		err := e.w.oracle.center.DB().QueryRowContext(e.w.t.Context(), `SELECT COUNT(*) FROM schedule_server
			WHERE own_sign = ? AND name = ?`, signOf(p.env), p.name).Scan(&n)
		if n > 0 || err != nil {
			return p.name + " still counts as alive", err
		}
		return e.settled()
	})
}

// operate calls a verb for the task. It reports whether that was done.
func (e *exertion) operate(words ...string) (done bool, err error) {
	said, err := e.w.operateIn(e.task.env, append([]string{words[0], "task=" + e.task.name}, words[1:]...)...)
	e.w.note("exercise: %s: %s", strings.Join(words, " "), said)
	return !strings.HasPrefix(said, "refused") && !strings.HasPrefix(said, "there is no") && !strings.HasPrefix(said, "[] "), err
}

// busy gives each queue something to do.
func (e *exertion) busy() error {
	if e.task.inRuns() {
		return nil
	}
	return e.w.addItems([]string{e.task.name, "20"})
}

// total returns the number of queues that the task has, or would have if none was split.
func (e *exertion) total() (n int, err error) {
	err = e.w.oracle.center.DB().QueryRowContext(e.w.t.Context(), `SELECT MIN(queue_total) FROM schedule_queue WHERE task_type = ?`,
		e.task.name).Scan(&n)
	return n, err
}

// resize requests another number of queues.
func (e *exertion) resize() error {
	_, limit, err := e.limit()
	if err != nil || e.task.named() {
		return err
	}
	n, err := e.total()
	if err := errors.Join(err, e.busy()); err != nil {
		return err
	}
	if e.rng.IntN(3) == 0 && !e.spec().keepsCursors() {
		return e.byHand(n%6+1, limit)
	}
	if done, err := e.operate("task_set", fmt.Sprintf("queues=%d", n%6+1)); err != nil || !done {
		return err
	}
	return e.soon("divided", limit, e.settled)
}

// byHand requests another number of queues by hand. The first owner that looks, with an audit, tells all of them (N1).
func (e *exertion) byHand(n int, limit time.Duration) error {
	if err := e.watch(limit); err != nil { // an owner that still reads another change would see this one, and tell nobody
		return err
	}
	if err := e.w.request([]string{e.task.name, fmt.Sprint(n)}); err != nil {
		return err
	}
	err := e.soon("given up", 35*time.Second+limit, func() (string, error) {
		left, err := e.settled()
		if left == "" || strings.Contains(left, "no owner") {
			return "", err
		}
		return left, err
	})
	if err != nil || len(e.w.broken) > 0 {
		return err
	}
	return e.soon("divided", limit, e.settled)
}

// spec returns the task as the text has it.
func (e *exertion) spec() taskSpec { return taskSpec{e.task.name, e.task.words} }

// withdraw requests another number of queues, or a merge, while a call of one queue hangs: the others have no owner soon,
// and get none (N1). Then it takes the number back.
func (e *exertion) withdraw() error {
	_, limit, err := e.limit()
	if err != nil || e.task.named() || !e.always() || e.task.settings.BatchTimeout > 0 { // which ends the call
		return err
	}
	n, err := e.total()
	split := e.task.settings.Splittable && e.rng.IntN(2) == 0
	if err != nil || n < 2 && !split {
		return err
	}
	if split { // it is withdrawn by the number that the others have
		if done, err := e.operate("queue_split", "queue=?0", fmt.Sprintf("total=%d", 2*n)); err != nil || !done {
			return err
		}
		if err := e.soon("split", limit, e.settled); err != nil || len(e.w.broken) > 0 {
			return err
		}
	}
	were, err := e.queues()
	if err != nil {
		return err
	}
	defer e.hang(false)
	if busy, err := e.holdOne(); err != nil || !busy {
		return err
	}
	request := []string{"task_set", fmt.Sprintf("queues=%d", n+1)}
	merges := split && (e.rng.IntN(2) == 0 || n == 1) // without others no number takes another one back
	if merges {
		request = []string{"queue_merge", "queue=?0", fmt.Sprintf("total=%d", n)}
	}
	if done, err := e.operate(request...); err != nil || !done {
		return err
	}
	if err := e.waits(limit); err != nil || len(e.w.broken) > 0 {
		return err
	}
	if !merges {
		if done, err := e.operate("task_set", fmt.Sprintf("queues=%d", n)); err != nil || !done {
			return err
		}
	}
	e.hang(false)
	if err := e.soon("as before", limit, e.settled); err != nil || len(e.w.broken) > 0 || merges {
		return err
	}
	are, err := e.queues()
	if are != were {
		e.w.breaks("withdrawn: the queues of %s were %s, and are %s after a change that was taken back", e.task.name, were, are)
	}
	return err
}

// holdOne adds an item whose call hangs, and reports whether the call has begun: the item may be behind a dead one of its
// key.
func (e *exertion) holdOne() (begun bool, err error) {
	before := e.w.callsOf(e.task)
	e.hang(true)
	if err := e.w.addItems([]string{e.task.name, "1"}); err != nil {
		return false, err
	}
	for began := time.Now(); time.Since(began) < 5*time.Second; time.Sleep(100 * time.Millisecond) {
		if e.w.callsOf(e.task) > before {
			return true, nil
		}
	}
	return false, nil
}

// waits waits until queues have no owner because of a change, and watches them. Sometimes a process joins, so that plans
// are made.
func (e *exertion) waits(limit time.Duration) error {
	for began := time.Now(); time.Since(began) < limit; time.Sleep(50 * time.Millisecond) {
		left, err := e.settled()
		if err != nil || left == "" {
			return err
		}
		if strings.Contains(left, "no owner") {
			break
		}
	}
	switch e.rng.IntN(3) {
	case 0: // the change is taken back at once
		return nil
	case 1:
		if e.w.process(e.newName()) == nil {
			e.w.start(e.newName())
		}
	}
	return e.watch(3 * time.Second)
}

// queues returns the queues of the task, as a text.
func (e *exertion) queues() (text string, err error) {
	err = e.w.oracle.center.DB().QueryRowContext(e.w.t.Context(), `SELECT GROUP_CONCAT(queue_id || ' of ' || queue_total || ' in ' || division,
		', ' ORDER BY queue_id) FROM schedule_queue WHERE task_type = ?`, e.task.name).Scan(&text)
	return text, err
}

// split splits a queue, and merges it again.
func (e *exertion) split() error {
	_, limit, err := e.limit()
	if err != nil || e.task.named() || !e.task.settings.Splittable {
		return err
	}
	n, err := e.total()
	if err := errors.Join(err, e.busy()); err != nil {
		return err
	}
	for _, change := range [][]string{
		{"queue_split", "queue=?0", fmt.Sprintf("total=%d", 2*n)}, {"queue_merge", "queue=?0", fmt.Sprintf("total=%d", n)},
	} {
		if done, err := e.operate(change...); err != nil || !done {
			return err
		}
		if err := e.soon(change[0], limit, e.settled); err != nil {
			return err
		}
	}
	return nil
}

// always reports whether the task works at any time, at its full speed.
func (e *exertion) always() bool {
	return !e.task.inRuns() && !slices.ContainsFunc(e.task.words, func(w string) bool { return strings.HasPrefix(w, "permit_") })
}

// calls returns how many calls of the task have begun.
func (w *world) callsOf(t *task) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.begun[t.name]
}

// pause pauses the task. Nothing begins, in a new process either, until it is resumed.
func (e *exertion) pause() error {
	beat, err := e.beat()
	if err != nil || !e.always() {
		return err
	}
	if done, err := e.operate("task_pause"); err != nil || !done {
		return err
	}
	if err := e.watch(2*beat + time.Second); err != nil {
		return err
	}
	before := e.w.callsOf(e.task)
	if err := e.busy(); err != nil {
		return err
	}
	if e.w.process(e.newName()) == nil {
		e.w.start(e.newName())
	}
	if err := e.watch(8 * time.Second); err != nil {
		return err
	}
	if now := e.w.callsOf(e.task); now > before {
		e.w.breaks("paused: %d calls of %s have begun while it is paused", now-before, e.task.name)
	}
	if _, err := e.operate("task_resume"); err != nil {
		return err
	}
	return e.soon("resumed", 2*beat+3*time.Second, func() (string, error) {
		if e.w.callsOf(e.task) > before {
			return "", nil
		}
		return "no call has begun", nil
	})
}

// newRun submits a run of the task, and returns its key.
func (e *exertion) newRun(words ...string) (key string, done bool, err error) {
	key = fmt.Sprint("exercise", e.w.callsOf(e.task), time.Since(e.w.began))
	done, err = e.operate(append([]string{"run_submit", "key=" + key}, words...)...)
	return key, done, err
}

// state waits until a run has one of some states.
func (e *exertion) state(key, what string, limit time.Duration, states ...string) error {
	return e.soon(what, limit, func() (state string, err error) {
		err = e.w.oracle.center.DB().QueryRowContext(e.w.t.Context(), `SELECT state FROM schedule_run WHERE task_type = ? AND run_key = ?`,
			e.task.name, key).Scan(&state)
		if slices.Contains(states, state) {
			return "", err
		}
		return "the run is " + state, err
	})
}

// openRuns returns how many runs of the task are open: they come first.
func (e *exertion) openRuns() (n int, err error) {
	err = e.w.oracle.center.DB().QueryRowContext(e.w.t.Context(), `SELECT COUNT(*) FROM schedule_run WHERE task_type = ?
		AND finished_at IS NULL`, e.task.name).Scan(&n)
	return n, err
}

// submit submits a run. It begins at once.
func (e *exertion) submit() error {
	beat, err := e.beat()
	if err != nil || !e.task.inRuns() {
		return err
	}
	if n, err := e.openRuns(); err != nil || n > 0 {
		return err
	}
	key, done, err := e.newRun()
	if err != nil || !done {
		return err
	}
	return e.state(key, "open", beat+2*time.Second, "RUNNING", "SUCCESS", "FAILED")
}

// deadline submits a run that hangs beyond its deadline.
func (e *exertion) deadline() error {
	beat, err := e.beat()
	if err != nil || !e.task.inRuns() {
		return err
	}
	e.hang(true)
	defer e.hang(false)
	late := time.Now().Add(time.Duration(clock.Load()) + 10*time.Second) // by the clock of the database
	key, done, err := e.newRun("deadline=" + late.UTC().Format(time.RFC3339))
	if err != nil || !done {
		return err
	}
	return e.state(key, "late", 10*time.Second+2*beat+5*time.Second, "FAILED", "SUCCESS")
}

// backfill makes runs of slots of a trigger.
func (e *exertion) backfill() error {
	beat, err := e.beat()
	if err != nil || !e.task.inRuns() || !slices.ContainsFunc(e.task.words, func(w string) bool { return strings.HasPrefix(w, "every=") }) {
		return err
	}
	if n, err := e.openRuns(); err != nil || n > 0 {
		return err
	}
	from := time.Now().Add(-time.Hour).UTC()
	said, err := e.w.operateIn(e.task.env, "run_backfill", "trigger="+e.task.name, "from="+from.Format(time.RFC3339),
		"to="+from.Add(time.Minute).Format(time.RFC3339))
	e.w.note("exercise: backfill: %s", said)
	if err != nil || strings.HasPrefix(said, "refused") {
		return err
	}
	return e.soon("made", beat+3*time.Second, func() (string, error) {
		n, err := e.openRuns()
		if n > 0 {
			return "", err
		}
		return "no run is made", err
	})
}

// cut cuts a process off, in which calls hang. They have ended when the others may take over: a margin before their
// patience ends (S5).
func (e *exertion) cut() error {
	p, limit, err := e.oneOfMany()
	if p == nil || err != nil || e.task.writes == "exec" || !e.always() {
		return err
	}
	var beat, patience int64
	err = e.w.oracle.center.DB().QueryRowContext(e.w.t.Context(), `SELECT MIN(heartbeat_interval_ms), MIN(s.judge_dead_interval_ms)
		FROM schedule_server s JOIN schedule_task_type t ON t.task_type = s.task_type WHERE s.task_type = ?`, e.task.name).
		Scan(&beat, &patience)
	if err != nil {
		return err
	}
	e.hang(true)
	defer e.hang(false)
	if err := errors.Join(e.busy(), e.watch(3*time.Second)); err != nil {
		return err
	}
	p.link.set(trouble{cut: true})
	over := time.Duration(patience-max(beat, patience*15/100))*time.Millisecond + 200*time.Millisecond
	time.Sleep(over)
	e.w.mu.Lock()
	for c := range e.w.calls {
		if c.p == p && c.task == e.task {
			e.w.breaksLocked("lease: %s executes items %v of %s %s after it was cut off, and counts as dead after %dms", p.name,
				c.items, e.task.name, over, patience)
		}
	}
	e.w.mu.Unlock()
	var healed string
	db := e.w.oracle.center.DB()
	if err := db.QueryRowContext(e.w.t.Context(), `SELECT rota_now()`).Scan(&healed); err != nil {
		return err
	}
	p.link.set(trouble{})
	e.hang(false)
	return e.soon("back", time.Duration(patience)*3/2*time.Millisecond+10*time.Second+limit, func() (string, error) {
		left, err := e.settled()
		if err == nil && left == "" { // it may not have noticed yet that it is back
			err = e.each(db, `SELECT task_type, name FROM schedule_server WHERE name = ? AND own_sign = ? AND heartbeat_time <= ?`,
				func(task, name string) { left = fmt.Sprint(name, " has sent no heartbeat for ", task) }, p.name, signOf(e.task.env), healed)
		}
		return left, err
	})
}

// hang lets the calls of the task hang, or go on.
func (e *exertion) hang(hung bool) {
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	e.w.hung[e.task.name] = hung
}
