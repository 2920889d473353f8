package stage

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Usage is the work of a server during some time.
type Usage struct {
	Statements float64       // PostgreSQL: transactions, which equal statements without BEGIN
	RowsRead   float64       // from tables, with or without an index
	RowsMade   float64       // inserted, updated and deleted
	CPU        time.Duration // of its processes; 0 if unknown
	Took       time.Duration
}

// reading is a state of a server's counters.
type reading struct {
	Usage
	at time.Time
}

// Measure returns the work of the server while f runs. Nothing else may use the server. Other sessions of PostgreSQL
// report their counters once a second and when they end, so f should take many seconds or end its sessions.
func (d *Database) Measure(ctx context.Context, f func() error) (Usage, error) {
	if err := d.flush(ctx); err != nil {
		return Usage{}, err
	}
	before, err := d.read(ctx)
	if err != nil {
		return Usage{}, err
	}
	if err := f(); err != nil {
		return Usage{}, err
	}
	took := time.Since(before.at)
	if err := d.flush(ctx); err != nil {
		return Usage{}, err
	}
	after, err := d.read(ctx)
	return Usage{
		Statements: after.Statements - before.Statements - ownStatements[d.Server.Kind],
		RowsRead:   after.RowsRead - before.RowsRead, RowsMade: after.RowsMade - before.RowsMade,
		CPU: after.CPU - before.CPU, Took: took,
	}, err
}

// ownStatements is the number of statements of Measure itself, as each kind of server counts them.
var ownStatements = map[string]float64{Postgres: 2, MariaDB: 1}

// flush waits until the counters include this session and the sessions that have just ended.
func (d *Database) flush(ctx context.Context) error {
	if d.Server.Kind != Postgres {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(300 * time.Millisecond):
	}
	return d.Do(ctx, "SELECT pg_stat_force_next_flush()")
}

func (d *Database) read(ctx context.Context) (r reading, err error) {
	r.CPU, r.at = d.Server.CPU(), time.Now()
	if d.Server.Kind == Postgres {
		err = d.QueryRowContext(ctx, `SELECT (SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()),
			SUM(seq_tup_read + COALESCE(idx_tup_fetch, 0)), SUM(n_tup_ins + n_tup_upd + n_tup_del)
			FROM pg_stat_user_tables`).Scan(&r.Statements, &r.RowsRead, &r.RowsMade)
		return r, err
	}
	rows, err := d.QueryContext(ctx, `SHOW GLOBAL STATUS WHERE Variable_name IN
		('Questions', 'Handler_write', 'Handler_update', 'Handler_delete') OR Variable_name LIKE 'Handler\_read%'`)
	if err != nil {
		return r, err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		var value float64
		if err := rows.Scan(&name, &value); err != nil {
			return r, err
		}
		switch {
		case name == "Questions":
			r.Statements = value
		case strings.HasPrefix(name, "Handler_read"):
			r.RowsRead += value
		default:
			r.RowsMade += value
		}
	}
	return r, rows.Err()
}

// ticks is the number of units of CPU time per second in /proc.
const ticks = 100

// CPU returns the CPU time of the server's processes, including ended processes. It returns 0 if the server does not
// run on this machine, and on systems other than Linux.
func (s *Server) CPU() (sum time.Duration) {
	main := s.process()
	if main == 0 {
		return 0
	}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is valid
	for _, path := range stats {
		switch p := readProcess(path); {
		case p.id == main:
			sum += p.own + p.children
		case p.parent == main:
			sum += p.own
		}
	}
	return sum
}

// ProcessCPU returns the CPU time of a process so far, without its children. It returns 0 for one that has ended, and
// on systems other than Linux.
func ProcessCPU(pid int) time.Duration { return readProcess(fmt.Sprintf("/proc/%d/stat", pid)).own }

// process is what the kernel says about a process.
type process struct {
	id, parent    int
	own, children time.Duration // CPU time; that of the children that have ended
}

// readProcess reads a file /proc/PID/stat. It returns the zero value if the process has just ended: its parent counts
// it.
func readProcess(path string) process {
	text, _ := os.ReadFile(path)
	name, rest, _ := bytes.Cut(text, []byte(") "))
	fields := strings.Fields(string(rest))
	if len(fields) < 15 {
		return process{}
	}
	id, _, _ := strings.Cut(string(name), " ")
	number := func(text string) int { n, _ := strconv.Atoi(text); return n } // the kernel writes numbers
	sum := func(i int) time.Duration {
		return time.Duration(number(fields[i])+number(fields[i+1])) * time.Second / ticks
	}
	return process{id: number(id), parent: number(fields[1]), own: sum(11), children: sum(13)}
}

// daemons are the programs of the servers. A MySQL that is not installed runs in a loader of its own, before its name.
var daemons = map[string]string{Postgres: "postgres", MySQL: "mysqld", MariaDB: "mariadbd"}

// process returns the id of the server's main process, or 0 without one. The process has the port among its arguments.
func (s *Server) process() int {
	u, err := url.Parse(s.url)
	if err != nil {
		return 0
	}
	want := "--port=" + u.Port() + "\x00"
	if s.Kind == Postgres {
		want = "-p\x00" + u.Port() + "\x00"
	}
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is valid
	for _, path := range lines {
		text, err := os.ReadFile(path)
		if err == nil && bytes.Contains(text, []byte(daemons[s.Kind]+"\x00")) && bytes.Contains(text, []byte(want)) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path))) // the pattern wants digits
			return pid
		}
	}
	return 0
}
