package sim

import (
	"slices"
	"strings"
	"time"
)

// placing is a rule about where the queues of a task may be, or how many of its calls may be in flight. An operator sets
// it when everything is at rest, and the roster obeys soon. A history has one.
type placing struct {
	verb  []string // a verb and its arguments besides the task; ? stands for a server of the task
	zones bool     // it needs servers in both zones
	met   func(p placed) bool
}

// placed says where the queues of a task are.
type placed struct {
	owners  map[string]string // servers, by queue; "" for none
	servers map[string]server // that are alive
	calls   int               // in flight
}

type server struct {
	name, zone, state string
	weight            int64
}

var placings = []placing{
	{[]string{"task_set", "require=zone=x"}, true, func(p placed) bool { return p.in("x") == len(p.owners) }},
	{[]string{"task_set", "prefer=zone=y"}, true, func(p placed) bool { return p.in("y") == len(p.owners) }},
	{[]string{"queue_pin", "queue=0", "labels=zone=x"}, true, func(p placed) bool { return p.servers[p.owners["0"]].zone == "x" }},
	{[]string{"task_set", "spread=zone"}, true, func(p placed) bool {
		share := float64(len(p.owners)) * float64(p.weight("x")) / float64(p.weight("x")+p.weight("y"))
		off := float64(p.in("x")) - share
		return off > -1 && off < 1
	}},
	{[]string{"task_set", "max_queues_per_server=1"}, false, func(p placed) bool {
		most, with := p.most() // what no server may take stays where it is
		return with == min(len(p.owners), len(p.servers)) && (most == 1 || len(p.owners) > len(p.servers))
	}},
	{[]string{"task_set", "max_servers=1"}, false, func(p placed) bool {
		most, with := p.most()
		return with == 1 && most == len(p.owners)
	}},
	{[]string{"task_set", "max_in_flight=1"}, false, func(p placed) bool { return p.calls <= 1 }},
	{[]string{"worker_pause", "worker=?"}, false, func(p placed) bool {
		for _, owner := range p.owners {
			if p.servers[owner].state == "PAUSED" && len(p.servers) > 1 {
				return false
			}
		}
		return true
	}},
}

// in returns how many queues have an owner in a zone.
func (p placed) in(zone string) (n int) {
	for _, owner := range p.owners {
		if p.servers[owner].zone == zone {
			n++
		}
	}
	return n
}

// weight returns the weight of the servers in a zone.
func (p placed) weight(zone string) (n int64) {
	for _, s := range p.servers {
		if s.zone == zone {
			n += s.weight
		}
	}
	return n
}

// most returns how many queues a server owns at most, and how many servers own any.
func (p placed) most() (most, with int) {
	has := map[string]int{}
	for _, owner := range p.owners {
		if owner != "" {
			has[owner]++
			most = max(most, has[owner])
		}
	}
	return most, len(has)
}

// placed reads where the queues of a task are.
func (o *oracle) placed(t *task) (p placed, err error) {
	p.owners, p.servers = map[string]string{}, map[string]server{}
	db := o.w.oracle.center.DB()
	err = o.each(db, `SELECT queue_id, COALESCE(cur_server, '') FROM schedule_queue WHERE task_type = ?`,
		func(queue, owner string) { p.owners[queue] = owner }, t.name)
	if err != nil {
		return p, err
	}
	err = o.each(db, `SELECT uuid, name || ' ' || weight || ' ' || state FROM schedule_server WHERE task_type = ?`,
		func(uuid, text string) {
			words := strings.Fields(text)
			p.servers[uuid] = server{words[0], zoneOf(words[0]), words[2], number(words[1])}
		}, t.name)
	o.w.mu.Lock()
	defer o.w.mu.Unlock()
	for c := range o.w.calls {
		if c.task == t {
			p.calls++
		}
	}
	return p, err
}

// places plays the place of the history, for one of its tasks.
func (o *oracle) places() error {
	t := o.w.tasks[o.w.h.seed/41%uint64(len(o.w.tasks))]
	p, err := o.placed(t)
	if err != nil {
		return err
	}
	possible := slices.DeleteFunc(slices.Clone(placings), func(r placing) bool {
		return r.zones && (p.weight("x") == 0 || p.weight("y") == 0)
	})
	rule := possible[o.w.h.seed/5%uint64(len(possible))]
	words := append([]string{rule.verb[0]}, rule.verb[1:]...)
	if rule.verb[0] == "worker_pause" {
		words[1] = "worker=" + o.aServer(p)
	} else {
		words = append(words, "task="+t.name)
	}
	said, err := o.w.operateIn(t.env, words...)
	o.w.note("place: %s: %s", strings.Join(words, " "), said)
	if err != nil || strings.HasPrefix(said, "refused") || strings.HasPrefix(said, "[] ") { // nothing was done
		return err
	}
	began := time.Now()
	for n := 0; n < 3; time.Sleep(time.Second) { // it stays so
		if p, err = o.placed(t); err != nil {
			return err
		}
		if n++; !rule.met(p) {
			n = 0
		}
		if time.Since(began) > 2*time.Minute {
			o.w.breaks("placed: 2 minutes after %s of %s, the queues are %v and the servers %v, with %d calls",
				strings.Join(words, " "), t.name, p.owners, p.servers, p.calls)
			return nil
		}
		if int(time.Since(began)/time.Second)%10 == 0 && !t.inRuns() {
			if err := o.w.addItems([]string{t.name, "9"}); err != nil {
				return err
			}
		}
		if err := o.sample(); err != nil {
			return err
		}
	}
	return nil
}

// aServer returns the first server.
func (o *oracle) aServer(p placed) (first string) {
	for uuid := range p.servers {
		if first == "" || uuid < first {
			first = uuid
		}
	}
	return first
}
