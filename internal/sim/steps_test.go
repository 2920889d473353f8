package sim

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/dutyrota/rota/ops"
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
			w.start(args[0])
		}
		return nil
	case "kill", "stop", "go", "leave", "link":
		if p == nil {
			return nil // it has ended: a shorter history may have lost its start
		}
		return w.disturb(p, verb, args[1:])
	case "clock":
		d, err := time.ParseDuration(args[0])
		clock.Add(int64(d))
		return err
	case "backup":
		return w.roster.backup(w.t.Context(), w.roster.path+".backup")
	case "restore":
		return w.restore()
	case "out", "back":
		w.mu.Lock()
		defer w.mu.Unlock()
		w.out[args[0]] = verb == "out"
		return nil
	case "items":
		return w.addItems(args)
	case "verb":
		said, err := w.operate(args)
		w.note("verb: %s", said)
		return err
	}
	return fmt.Errorf("step %s: there is no such step", s)
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

// restore lets the roster's database fall back to the last backup.
func (w *world) restore() error {
	w.mu.Lock()
	w.lossAt = time.Now()
	w.mu.Unlock()
	return w.roster.restore(w.roster.path + ".backup")
}

// addItems adds items to a task: their number, and the fate of the last one.
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
	return w.inItems(t, func(exec func(string, ...any) error) error {
		for k := range n {
			last := fateFine
			if k == n-1 {
				last = fate
			}
			if err := exec(`INSERT INTO sim_item (task, id, order_key, fate)
				SELECT ?, COALESCE(MAX(id), 0) + 1, (COALESCE(MAX(id), 0) + 1) % 7, ? FROM sim_item WHERE task = ?`,
				t.name, last, t.name); err != nil {
				return err
			}
		}
		return nil
	})
}

func (w *world) taskNamed(name string) *task {
	for _, t := range w.tasks {
		if t.name == name {
			return t
		}
	}
	return nil
}

// fileOf returns the database that has the items of a task.
func (w *world) fileOf(t *task) (f *file, data string) {
	for i, f := range w.data {
		if t.settings.Database == dataName(i) {
			return f, dataName(i)
		}
	}
	return w.roster, ""
}

// items returns the pool of the database that has the items of a task.
func (w *world) items(t *task) *sql.DB {
	if _, data := w.fileOf(t); data != "" {
		return w.oracle.center.Data(data).DB()
	}
	return w.oracle.center.DB()
}

// inItems runs statements in a transaction of the database that has the items of a task.
func (w *world) inItems(t *task, do func(exec func(string, ...any) error) error) error {
	db := w.items(t)
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

// operate calls a verb of package ops: its name with _ for spaces, and values by the names of the arguments. The value
// ?n is the n-th of what the argument can name. It returns what was done, or why the verb refuses.
func (w *world) operate(words []string) (said string, err error) {
	verb := ops.Find(strings.ReplaceAll(words[0], "_", " "))
	if verb == nil {
		return "", fmt.Errorf("there is no verb %s", words[0])
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	c := verb.Call()
	for _, word := range words[1:] {
		name, value, _ := strings.Cut(word, "=")
		a, err := argument(verb, name)
		if err != nil {
			return "", err
		}
		if n, picked := strings.CutPrefix(value, "?"); picked {
			if value, err = w.pick(ctx, a.Names, n, words); err != nil || value == "" {
				return fmt.Sprintf("there is no %s to name: %v", a.Names, err), nil
			}
		}
		if err := c.Add(a, value); err != nil {
			return "refused: " + err.Error(), nil
		}
	}
	change, err := c.Prepare(ctx, w.ops)
	if err != nil {
		return "refused: " + err.Error(), nil
	}
	done, err := change.Do(ctx, "sim")
	return fmt.Sprint(done, err), nil
}

func argument(v *ops.Verb, name string) (ops.Arg, error) {
	for _, a := range v.Args {
		if a.Name == name {
			return a, nil
		}
	}
	return ops.Arg{}, fmt.Errorf("verb %s has no argument %s", v.Name, name)
}

// pick returns one of the things that an argument can name.
func (w *world) pick(ctx context.Context, names, n string, words []string) (string, error) {
	k, err := strconv.Atoi(n)
	if err != nil {
		return "", err
	}
	taskType := ""
	for _, word := range words {
		if value, of := strings.CutPrefix(word, "task="); of {
			taskType = value
		}
	}
	list, err := w.named(ctx, names, taskType)
	if err != nil || len(list) == 0 {
		return "", err
	}
	return list[k%len(list)], nil
}

func (w *world) named(ctx context.Context, names, taskType string) (list []string, err error) {
	switch names {
	case "queue":
		queues, err := w.ops.Queues().List(ctx, ops.QueueFilter{TaskType: taskType})
		for _, q := range queues {
			list = append(list, q.QueueID)
		}
		return list, err
	case "worker":
		servers, err := w.ops.Servers().List(ctx, ops.ServerFilter{TaskType: taskType})
		for _, s := range servers {
			list = append(list, s.UUID)
		}
		return list, err
	case "item":
		items, err := w.ops.Items().List(ctx, ops.ItemFilter{TaskType: taskType}, 100)
		for _, i := range items {
			list = append(list, i.ItemKey)
		}
		return list, err
	case "trigger":
		triggers, err := w.ops.Triggers().List(ctx, runs.TriggerFilter{})
		for _, t := range triggers {
			list = append(list, t.Name)
		}
		return list, err
	case "open backfill", "paused backfill":
		backfills, err := w.ops.Backfills().List(ctx, runs.BackfillFilter{}, 100)
		for _, b := range backfills {
			list = append(list, b.ID)
		}
		return list, err
	}
	if strings.HasSuffix(names, "run") {
		all, err := w.ops.Runs().List(ctx, runs.Filter{}, 100)
		for _, r := range all {
			list = append(list, r.ID)
		}
		return list, err
	}
	return nil, fmt.Errorf("the simulator cannot name a %s", names)
}
