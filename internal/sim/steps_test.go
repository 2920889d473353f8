package sim

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dutyrota/rota/runs"
)

// take takes a step. An error is one of the text, not of the roster.
func (w *world) take(s step) error {
	w.note("step: %s", strings.Join(s.words, " "))
	verb, args := s.words[0], s.words[1:]
	if len(args) == 0 && verb != "backup" && verb != "restore" {
		return fmt.Errorf("step %s: %s needs an argument", s, verb)
	}
	p := (*process)(nil)
	if len(args) > 0 {
		p = w.process(args[0])
	}
	switch verb {
	case "start":
		if p == nil { // a process of this name may still run
			w.start(args[0], args[1:]...)
		}
		return nil
	case "kill", "stop", "go", "leave", "link":
		if p == nil {
			return nil // it has ended: a shorter history may have lost its start
		}
		return w.disturb(p, verb, args[1:])
	case "clock":
		d, err := time.ParseDuration(args[0])
		w.recorder.set(time.Duration(clock.Add(int64(d))))
		return err
	case "backup":
		w.recorder.backup()
		return w.roster.backup(w.t.Context(), w.roster.path+".backup")
	case "restore":
		return w.restore()
	case "down", "up":
		for i, f := range w.data {
			if args[0] == dataName(i) {
				f.setDown(verb == "down")
			}
		}
		return nil
	case "out", "back":
		w.mu.Lock()
		defer w.mu.Unlock()
		w.out[args[0]] = verb == "out"
		return nil
	case "items":
		return w.addItems(args)
	case "edit":
		return w.edit(args)
	case "request":
		return w.request(args)
	case "submit":
		return w.submit(args)
	case "verb":
		if loses, err := w.losesCursors(args); loses || err != nil {
			return err
		}
		said, err := w.operate(args...)
		w.note("verb: %s", said)
		return err
	}
	return fmt.Errorf("step %s: there is no such step", s)
}

// losesCursors reports whether a verb divides the items of a task in another way while no worker is there that refuses
// it, because the cursors of its queues are in a data database. The operator would have to delete the cursors, and all
// items would take effect again.
func (w *world) losesCursors(words []string) (bool, error) {
	for _, t := range w.tasks {
		divides := slices.ContainsFunc(words, func(word string) bool {
			return strings.HasPrefix(word, "queues=") || strings.HasPrefix(word, "total=")
		})
		keeps := t.settings.Database != "" && !t.named() && t.offers.Cursored && !t.inRuns()
		if !keeps || !divides || !slices.Contains(words, "task="+t.name) {
			continue
		}
		var servers int
		err := w.oracle.center.DB().QueryRowContext(w.t.Context(),
			`SELECT COUNT(*) FROM schedule_server WHERE task_type = ?`, t.name).Scan(&servers)
		return servers == 0, err
	}
	return false, nil
}

// disturb does something to a process that runs.
func (w *world) disturb(p *process, verb string, args []string) error {
	switch verb {
	case "kill":
		w.kill(p)
	case "stop":
		p.link.stop()
	case "go":
		p.link.goOn()
	case "leave":
		p.leave()
	case "link":
		t, err := parseTrouble(args)
		p.link.set(t)
		return err
	}
	return nil
}

// parseTrouble returns the trouble of words such as delay=200ms lose=0.05, or none.
func parseTrouble(words []string) (t trouble, err error) {
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "ok":
		case "cut":
			t.cut = true
		case "delay":
			t.delay, err = time.ParseDuration(value)
		case "lose":
			t.lose, err = strconv.ParseFloat(value, 64)
		case "reply":
			t.reply, err = strconv.ParseFloat(value, 64)
		case "abort":
			t.abort, err = strconv.ParseFloat(value, 64)
		default:
			err = fmt.Errorf("a link has no trouble called %s", word)
		}
		if err != nil {
			return t, err
		}
	}
	return t, nil
}

// edit writes a setting into the row of a task type, as a person does by hand: no program has judged it. It can write
// the settings whose columns have their names.
func (w *world) edit(args []string) error {
	name, value, ok := strings.Cut(strings.Join(args[1:], ""), "=")
	if !ok || strings.ContainsFunc(name, func(r rune) bool { return r != '_' && (r < 'a' || r > 'z') }) {
		return fmt.Errorf("edit %v: it needs a setting and its value", args)
	}
	var before any
	db := w.oracle.center.DB()
	err := db.QueryRowContext(w.t.Context(), `SELECT `+name+` FROM schedule_task_type WHERE task_type = ?`, args[0]).
		Scan(&before)
	if errors.Is(err, sql.ErrNoRows) {
		return nil // no process has defined it yet
	}
	if err != nil {
		return err
	}
	write := func(value any) error {
		_, err := db.ExecContext(w.t.Context(), `UPDATE schedule_task_type SET `+name+` = ?, version = version + 1
			WHERE task_type = ?`, value, args[0])
		return err
	}
	w.mu.Lock()
	w.edits = append(w.edits, func() error { return write(before) })
	w.mu.Unlock()
	if b, err := strconv.ParseBool(value); err == nil {
		return write(b)
	}
	return write(value)
}

// request requests another number of queues of a task by hand: no version rises, so the owners learn of it from an audit.
func (w *world) request(args []string) error {
	if len(args) < 2 {
		return fmt.Errorf("request %v: it needs a task and a number", args)
	}
	total, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	_, err = w.oracle.center.DB().ExecContext(w.t.Context(), `UPDATE schedule_task_running SET queue_changes = ?
		WHERE task_type = ? AND queue_changes IS NULL
			AND EXISTS (SELECT 1 FROM schedule_queue q WHERE q.task_type = schedule_task_running.task_type)`,
		fmt.Sprintf(`{"all": %d}`, total), args[0])
	return err
}

// submit submits a run of a task under a key, in a transaction of the caller.
func (w *world) submit(args []string) error {
	t := w.taskNamed(args[0])
	if t == nil || len(args) < 2 {
		return fmt.Errorf("submit %v: it needs a task and a key", args)
	}
	tx, err := w.pool("").BeginTx(w.t.Context(), nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	id, existed, err := w.ops[t.env].Runs().SubmitTx(w.t.Context(), tx, t.name, runs.Submission{Key: args[1]})
	w.note("submit: run %s, existed: %t, %v", id, existed, err)
	if err != nil {
		return nil // such as a task that no process has defined yet
	}
	return tx.Commit()
}

// undoEdits takes the edits back, the last one first.
func (w *world) undoEdits() error {
	w.mu.Lock()
	edits := w.edits
	w.mu.Unlock()
	for _, undo := range slices.Backward(edits) {
		if err := undo(); err != nil {
			return err
		}
	}
	w.mu.Lock()
	w.edits = nil
	w.mu.Unlock()
	return nil
}

// restore lets the roster's database fall back to the last backup. It notes which items are not done any more.
func (w *world) restore() error {
	w.mu.Lock()
	w.lossAt = time.Now()
	w.mu.Unlock()
	if err := w.recorder.lose(); err != nil {
		return err
	}
	before, err := w.done()
	if err != nil {
		return err
	}
	if err := w.roster.restore(w.roster.path + ".backup"); err != nil {
		return err
	}
	if err := w.recorder.lost(); err != nil {
		return err
	}
	after, err := w.done()
	for id := range before {
		if !after[id] {
			w.undone[id] = true
		}
	}
	return errors.Join(err, w.wantWhatIs())
}

// done returns the items that have taken effect, as "task id".
func (w *world) done() (ids map[string]bool, err error) {
	ids = map[string]bool{}
	for _, t := range w.tasks {
		err := w.eachItem(t, `SELECT task, id FROM sim_item WHERE task = ? AND effects > 0`,
			func(task, id string) { ids[task+" "+id] = true })
		if err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// addItems adds items to a task: their number, and the fate of the last one, or of each.
func (w *world) addItems(args []string) error {
	t := w.taskNamed(args[0])
	n, err := strconv.Atoi(args[1])
	if t == nil || err != nil {
		return fmt.Errorf("items of %s: %w", args[0], err)
	}
	fate := fateFine
	if len(args) > 2 {
		fate = args[2]
	}
	last := int64(0)
	err = w.eachItem(t, `SELECT task, MAX(id) FROM sim_item WHERE task = ? GROUP BY task`,
		func(_, id string) { last = max(last, number(id)) })
	for _, name := range t.databases() {
		if err != nil {
			break
		}
		err = w.inTx(w.pool(name), func(exec func(string, ...any) error) (err error) {
			for id := last + 1; id <= last+int64(n) && err == nil; id++ {
				fateOf := fateFine
				if id == last+int64(n) || slices.Contains(args, eachItem) {
					fateOf = fate
				}
				if t.databaseOf(id) == name {
					err = exec(`INSERT INTO sim_item (task, id, order_key, fate) VALUES (?, ?, ?, ?)`, t.name, id, id%7, fateOf)
				}
			}
			return err
		})
	}
	if err == nil { // a hint that is lost costs half a minute
		_ = w.oracle.center.Wake(w.t.Context(), t.name)
	}
	return err
}

func (w *world) taskNamed(name string) *task {
	for _, t := range w.tasks {
		if t.name == name {
			return t
		}
	}
	return nil
}

// inTwoDatabases is the setting database of tasks with named queues whose items are in two databases.
const inTwoDatabases = "all=d0,east=d0,d1"

// databases returns the names of the databases that have the items of the task. That of the roster's is empty.
func (t *task) databases() []string {
	if t.settings.Database == inTwoDatabases {
		return []string{dataName(0), dataName(1)}
	}
	return []string{t.settings.Database}
}

// databaseOf returns the name of the database that has an item.
func (t *task) databaseOf(item int64) string {
	all := t.databases()
	if len(all) > 1 && !t.isOf(item, "all") && !t.isOf(item, "east") {
		return all[1]
	}
	return all[0]
}

// items returns the pools of the databases that have the items of a task.
func (w *world) items(t *task) (pools []*sql.DB) {
	for _, name := range t.databases() {
		pools = append(pools, w.pool(name))
	}
	return pools
}

// pool returns the pool of a data database, or of the roster's.
func (w *world) pool(name string) *sql.DB {
	if name == "" {
		return w.oracle.center.DB()
	}
	return w.oracle.center.Data(name).DB()
}

// eachItem calls f for each row of two texts in the databases that have the items of a task, which is the argument of
// the query.
func (w *world) eachItem(t *task, query string, f func(a, b string)) error {
	for _, db := range w.items(t) {
		if err := eachRow(w.t.Context(), db, query, f, t.name); err != nil {
			return err
		}
	}
	return nil
}

// inTx runs statements in a transaction of a database.
func (w *world) inTx(db *sql.DB, do func(exec func(string, ...any) error) error) error {
	tx, err := db.BeginTx(w.t.Context(), nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := do(func(query string, args ...any) error {
		_, err := tx.ExecContext(w.t.Context(), query, args...)
		return err
	}); err != nil {
		return err
	}
	return tx.Commit()
}
