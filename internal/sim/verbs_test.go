package sim

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/ops/verbs"
	"github.com/dutyrota/rota/runs"
)

// operate calls a verb of package verbs: its name with _ for spaces, and values by the names of the arguments. The value
// ?n is the n-th of what the argument can name. It returns what was done, or why the verb refuses. A verb is of the
// environment of its task, and otherwise of that of the first processes.
func (w *world) operate(words ...string) (said string, err error) {
	env := ""
	for _, t := range w.tasks {
		if slices.Contains(words, "task="+t.name) {
			env = t.env
		}
	}
	return w.operateIn(env, words...)
}

// operateIn calls a verb in an environment.
func (w *world) operateIn(env string, words ...string) (said string, err error) {
	verb := verbs.Find(strings.ReplaceAll(words[0], "_", " "))
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
			if value, err = w.pick(ctx, env, a.Names, n, words); err != nil || value == "" {
				return fmt.Sprintf("there is no %s to name: %v", a.Names, err), nil
			}
		}
		if err := c.Add(a, value); err != nil {
			return "refused: " + err.Error(), nil
		}
	}
	change, err := c.Prepare(ctx, w.ops[env])
	if err != nil {
		return "refused: " + err.Error(), nil
	}
	if o, ok := c.Operation().(verbs.DrainServers); ok && o.Force {
		w.force(o.Servers)
	}
	done, err := change.Do(ctx, "sim")
	return fmt.Sprint(done, err), w.want(c.Operation(), err)
}

// force notes which servers lose their queues although they may still work them.
func (w *world) force(servers []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, uuid := range servers {
		w.forced[uuid] = true
	}
}

func argument(v *verbs.Verb, name string) (verbs.Arg, error) {
	for _, a := range v.Args {
		if a.Name == name {
			return a, nil
		}
	}
	return verbs.Arg{}, fmt.Errorf("verb %s has no argument %s", v.Name, name)
}

// pick returns one of the things that an argument can name.
func (w *world) pick(ctx context.Context, env, names, n string, words []string) (string, error) {
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
	list, err := w.named(ctx, env, names, taskType)
	if err != nil || len(list) == 0 {
		return "", err
	}
	return list[k%len(list)], nil
}

func (w *world) named(ctx context.Context, env, names, taskType string) (list []string, err error) {
	o := w.ops[env]
	switch names {
	case "queue":
		queues, err := o.Queues().List(ctx, ops.QueueFilter{TaskType: taskType})
		for _, q := range queues {
			list = append(list, q.QueueID)
		}
		return list, err
	case "worker":
		servers, err := o.Servers().List(ctx, ops.ServerFilter{TaskType: taskType})
		for _, s := range servers {
			list = append(list, s.UUID)
		}
		return list, err
	case "item":
		items, err := o.Items().List(ctx, ops.ItemFilter{TaskType: taskType}, 100)
		for _, i := range items {
			list = append(list, i.ItemKey)
		}
		return list, err
	case "trigger":
		triggers, err := o.Triggers().List(ctx, runs.TriggerFilter{})
		for _, t := range triggers {
			list = append(list, t.Name)
		}
		return list, err
	case "open backfill", "paused backfill":
		backfills, err := o.Backfills().List(ctx, runs.BackfillFilter{}, 100)
		for _, b := range backfills {
			list = append(list, b.ID)
		}
		return list, err
	}
	if strings.HasSuffix(names, "run") {
		all, err := o.Runs().List(ctx, runs.Filter{}, 100)
		if some := slices.DeleteFunc(slices.Clone(all), func(r runs.Record) bool { return !fits(r, names) }); len(some) > 0 {
			all = some // a verb may meet a run that it refuses only if there is no other
		}
		for _, r := range all {
			list = append(list, r.ID)
		}
		return list, err
	}
	return nil, fmt.Errorf("the simulator cannot name a %s", names)
}

// fits reports whether a run is what an argument can name, such as a failed run.
func fits(r runs.Record, names string) bool {
	switch names {
	case "open run":
		return !r.Ended()
	case "ended run":
		return r.Ended()
	case "paused run":
		return r.Paused
	case "failed run":
		return r.State == runs.Failed || r.State == runs.DependentFailed || r.State == runs.Cancelled
	}
	return true
}
