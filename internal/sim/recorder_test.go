package sim

import (
	"fmt"
	"strings"
	"time"
)

// recordTables note in the roster what becomes of owners, in the transaction that does it: what happens between two
// looks of the oracle, too. A row is never changed.
var recordTables = []string{
	`CREATE TABLE sim_grant (id INTEGER PRIMARY KEY, queue TEXT, env TEXT, was TEXT, before INTEGER, server TEXT,
		epoch INTEGER, floor INTEGER, asked INTEGER, at TEXT)`,
	`CREATE TABLE sim_reserved (id INTEGER PRIMARY KEY, queue TEXT, said TEXT)`,
	// The queue of a server that is away, or is about to be, goes to nobody (P13). A reservation is an hour at most.
	`CREATE TRIGGER sim_reserves AFTER UPDATE OF cur_server ON schedule_queue
	WHEN OLD.cur_server IS NULL AND NEW.cur_server IS NOT NULL AND OLD.reserved_for IS NOT NULL
		AND julianday(substr(OLD.reserved_until, 1, 23)) - julianday(substr(rota_now(), 1, 23)) BETWEEN 0.1 / 86400 AND 1 / 24.0
		AND NOT EXISTS (SELECT 1 FROM schedule_server s WHERE s.task_type = OLD.task_type AND s.own_sign = OLD.own_sign
			AND s.name = OLD.reserved_for AND s.state <> 'LEAVING')
	BEGIN
		INSERT INTO sim_reserved (queue, said) VALUES (NEW.task_type || ' ' || NEW.queue_id,
			'is reserved for ' || OLD.reserved_for || ' until ' || OLD.reserved_until || ', and given to ' || NEW.cur_server);
	END`,
	grantTrigger("INSERT", "NULL", "-1", "0", "TRUE"),
	grantTrigger("UPDATE", "OLD.cur_server", "OLD.epoch", "COALESCE(OLD.req_server = NEW.cur_server, 0)",
		"NEW.epoch <> OLD.epoch OR NEW.cur_server IS NOT OLD.cur_server"),
	`CREATE TABLE sim_expiry (id INTEGER PRIMARY KEY, server TEXT, heard TEXT, at TEXT, patience INTEGER)`,
	`CREATE TRIGGER sim_expires AFTER INSERT ON schedule_server_history WHEN NEW.reason = 'EXPIRED' BEGIN
		INSERT INTO sim_expiry (server, heard, at, patience)
		VALUES (NEW.task_type || ' in ' || NEW.name, NEW.heartbeat_time, rota_now(), NEW.judge_dead_interval_ms);
	END`,
}

func grantTrigger(event, was, before, asked, when string) string {
	return `CREATE TRIGGER sim_grant_` + event + ` AFTER ` + event + ` ON schedule_queue WHEN ` + when + ` BEGIN
		INSERT INTO sim_grant (queue, env, was, before, server, epoch, floor, asked, at)
		VALUES (NEW.task_type || ' ' || NEW.queue_id || ' of ' || NEW.own_sign, NEW.own_sign, COALESCE(` + was + `, 'nobody'),
			` + before + `, COALESCE(NEW.cur_server, 'nobody'), NEW.epoch,
			COALESCE((SELECT epoch_floor FROM schedule_environment e WHERE e.own_sign = NEW.own_sign), 0), ` + asked + `, rota_now());
	END`
}

// recorder judges what the triggers have noted. It remembers it beyond a loss of history, which takes the notes back.
type recorder struct {
	w        *world
	grants   int64             // the last row of sim_grant that it has read
	expiries int64             // and of sim_expiry
	owners   map[string]string // by queue and epoch, in all branches of history
	epochs   map[string]int64  // the highest of each queue, in this branch
	floors   map[string]int64  // of the environments when the database fell back; nil before
	times    []clockTime       // the clocks of the database, the first one first

	handed map[string]handOver // by queue, the last one since somebody has emptied the map

	beats     map[*process]int // statements of heartbeats when the backup was made
	witnesses []*process       // the processes that must notice the loss
}

// clockTime is from when on the clock of the database was ahead by so much.
type clockTime struct {
	from  time.Time
	ahead time.Duration
}

func newRecorder(w *world) *recorder {
	return &recorder{
		w: w, owners: map[string]string{}, epochs: map[string]int64{}, times: []clockTime{{time.Now(), 0}},
		beats: map[*process]int{},
	}
}

// read judges what was noted since the last call.
func (r *recorder) read() error {
	db := r.w.oracle.center.DB()
	err := eachRow(r.w.t.Context(), db, `SELECT id, before || ' ' || epoch || ' ' || floor || ' ' || asked || ' ' || env || ' ' || was || ' '
			|| server || ' ' || queue || ',' || at FROM sim_grant WHERE id > ? ORDER BY id`, func(id, text string) {
		words := strings.SplitN(text, " ", 8)
		r.grants = number(id)
		queue, at, _ := strings.Cut(words[7], ",")
		r.grant(grant{number(words[0]), number(words[1]), number(words[2]), words[3] == "1", words[4], words[5], words[6], queue, at})
	}, r.grants)
	if err != nil {
		return err
	}
	if !r.w.h.has("clock") { // a plan may have read the clock before it was set
		err := eachRow(r.w.t.Context(), db, `SELECT queue, said FROM sim_reserved`, func(queue, said string) {
			r.w.breaks("reserved: queue %s %s", queue, said)
		})
		if err != nil {
			return err
		}
	}
	return eachRow(r.w.t.Context(), db, `SELECT id, heard || ',' || at || ',' || patience || ',' || server
		FROM sim_expiry WHERE id > ? ORDER BY id`, func(id, text string) {
		words := strings.SplitN(text, ",", 4)
		r.expiries = number(id)
		r.expiry(words[0], words[1], time.Duration(number(words[2]))*time.Millisecond, words[3])
	}, r.expiries)
}

// grant is a row of a queue that was made or has changed.
type grant struct {
	before, epoch, floor    int64
	asked                   bool // the server had requested the queue
	env, was, server, queue string
	at                      string
}

// handOver is a queue under its new epoch, which an owner has given to the server that had requested it.
type handOver struct {
	task, key string
	at        time.Time
}

// grant judges a row of a queue. Before a loss is noticed, epochs of the lost history may be used again (H8).
func (r *recorder) grant(g grant) {
	if highest := r.epochs[g.queue]; g.epoch < highest {
		r.w.breaks("epoch: queue %s has the epoch %d, and had %d", g.queue, g.epoch, highest)
	}
	r.epochs[g.queue] = g.epoch
	if g.server == "nobody" {
		return
	}
	if g.server != g.was && g.epoch <= g.before {
		r.w.breaks("epoch: queue %s goes from %s to %s under epoch %d, and had the epoch %d", g.queue, g.was, g.server, g.epoch, g.before)
	}
	raised := g.floor > r.floors[g.env]
	if raised && g.epoch <= g.floor {
		r.w.breaks("floor: queue %s is given to %s under epoch %d, and the floor is %d", g.queue, g.server, g.epoch, g.floor)
	}
	key := fmt.Sprint(g.queue, ", epoch ", g.epoch)
	if before, known := r.owners[key]; known && before != g.server && (r.floors == nil || raised) {
		r.w.breaks("two owners: queue %s had the owner %s and now has %s", key, before, g.server)
	}
	r.owners[key] = g.server
	if at, known := r.when(g.at, true); known && r.handed != nil {
		delete(r.handed, g.queue)
		if task, _, _ := strings.Cut(g.queue, " "); g.asked && g.was != "nobody" {
			r.handed[g.queue] = handOver{task, key, at}
		}
	}
}

// expiry judges the end of a server by others: it was silent for as long as its row says, also if the clock was set
// meanwhile (S7). After a loss the row may have an older heartbeat than the last one.
func (r *recorder) expiry(heard, at string, patience time.Duration, server string) {
	first, known := r.when(heard, false)
	last, now := r.when(at, true)
	if silence := last.Sub(first); known && now && r.floors == nil && silence < patience {
		r.w.breaks("expired: the server of %s was expired after a silence of %s, and has %s", server, silence, patience)
	}
}

// when returns when the clock of the database had a time: the last moment, or the first one.
func (r *recorder) when(text string, latest bool) (moment time.Time, known bool) {
	on, err := time.Parse("2006-01-02 15:04:05.999999", text)
	if err != nil {
		return moment, false
	}
	for i, t := range r.times {
		at := on.Add(-t.ahead)
		within := !at.Before(t.from.Add(-time.Millisecond)) && (i+1 == len(r.times) || !at.After(r.times[i+1].from))
		if within && (!known || latest) {
			moment, known = at, true
		}
	}
	return moment, known
}

// set notes that the clock of the database was set.
func (r *recorder) set(ahead time.Duration) { r.times = append(r.times, clockTime{time.Now(), ahead}) }

// wasSetBack reports whether the clock of the database was set back.
func (r *recorder) wasSetBack() bool {
	for i, t := range r.times[1:] {
		if t.ahead < r.times[i].ahead {
			return true
		}
	}
	return false
}

// backup notes what the processes have sent when the database was copied.
func (r *recorder) backup() {
	for _, p := range r.w.all {
		r.beats[p] = p.link.sent().beats
	}
}

// lose reads what the database is about to lose. A process that had sent heartbeats since the backup, and can go on,
// must notice the loss (H7).
func (r *recorder) lose() error {
	for _, p := range r.w.all {
		m := p.m.Load()
		if m != nil && m.Ready() == nil && p.alive.Load() && !p.left() && p.link.isFine() && p.link.sent().beats >= r.beats[p]+8 {
			r.witnesses = append(r.witnesses, p)
		}
	}
	return r.read()
}

// lost begins with the branch of history to which the database has fallen back.
func (r *recorder) lost() error {
	r.floors, r.epochs = map[string]int64{}, map[string]int64{}
	ctx, db := r.w.t.Context(), r.w.oracle.center.DB()
	err := eachRow(ctx, db, `SELECT own_sign, epoch_floor FROM schedule_environment`,
		func(env, floor string) { r.floors[env] = number(floor) })
	if err != nil {
		return err
	}
	return db.QueryRowContext(ctx, `SELECT (SELECT COALESCE(MAX(id), 0) FROM sim_grant), (SELECT COALESCE(MAX(id), 0) FROM sim_expiry)`).
		Scan(&r.grants, &r.expiries)
}

// unrest says which queues the epochs of a loss have left out, and which loss a process must have noticed and has not.
func (r *recorder) unrest() (list []string, err error) {
	ctx, db := r.w.t.Context(), r.w.oracle.center.DB()
	floors := map[string]int64{}
	err = eachRow(ctx, db, `SELECT own_sign, epoch_floor FROM schedule_environment`,
		func(env, floor string) { floors[env] = number(floor) })
	if err != nil {
		return nil, err
	}
	for _, p := range r.witnesses {
		if env := signOf(p.env); p.alive.Load() && !p.left() && floors[env] <= r.floors[env] {
			list = append(list, fmt.Sprintf("unnoticed: %s was there when the database fell back, and the epochs of %s do not rise", p.name, env))
		}
	}
	err = eachRow(ctx, db, `SELECT task_type || ' ' || queue_id, epoch || ', and the floor of ' || own_sign || ' is ' || epoch_floor
		FROM schedule_queue JOIN schedule_environment USING (own_sign) WHERE epoch <= epoch_floor AND epoch_floor > 0`,
		func(queue, text string) {
			list = append(list, fmt.Sprintf("floor: queue %s has the epoch %s", queue, text))
		})
	return list, err
}

// isFine reports whether the process of a link runs, and nothing troubles the link.
func (l *link) isFine() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.dead && l.stopped == nil && l.trouble == trouble{}
}
