package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/dutyrota/rota/internal/failures"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
)

// rosterCommands are the commands that need a roster, each with arguments that exist in newTestRoster.
var rosterCommands = []string{
	"task list", "task show settle", "task wait settle --timeout 1ms", "task pause settle", "task resume settle", "task delete regions --yes",
	"queue list", "queue add regions x", "queue remove regions north --yes", "queue pin settle 0 zone=b", "queue unpin settle 0", "worker list", "worker pause web1:1", "worker resume web1:1",
	"worker drain web1:1", "worker weight web1:1 2", "item list", "item retry settle --all", "item drop settle --all --yes", "event list", "plan settle", "top --once",
	"run submit extract", "run list", "run show extract", "run wait extract", "run cancel extract", "run rerun extract", "run pause extract", "run resume extract", "run ack extract",
	"trigger apply nightly --task extract --every 1h", "trigger list", "trigger pause nightly", "trigger resume nightly", "trigger fire nightly", "trigger delete nightly --yes",
}

// Every command refuses a missing roster in one line and creates none.
func TestCommandsWithoutRoster(t *testing.T) {
	t.Parallel()
	file := "sqlite:" + t.TempDir() + "/rota.db"
	for _, args := range rosterCommands {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			for _, test := range []struct {
				url  string
				code int
				want string
			}{
				{"", 2, "database is missing: set it in the file, with --database or in ROTA_DATABASE"},
				{"oracle://h/d", 2, "unknown scheme; want postgres://..., mysql://..., mariadb://... or sqlite:FILE"},
				{"postgres://u:secret@127.0.0.1:1/d", 1, "open postgres://u@127.0.0.1:1/d"},
				{file, 1, `there is no such file: run "rota migrate up"`},
			} {
				if args != rosterCommands[0] && strings.Contains(test.url, "://") {
					continue // all commands read the URL in the same function
				}
				list := strings.Fields(args)
				if test.url != "" {
					list = append(list, "--database", test.url)
				}
				s := &testRoster{T: t, dir: t.TempDir()}
				stdout, stderr, code := runRota(t, s.dir, list...)
				if code != test.code || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, test.want) {
					t.Errorf("rota %s: exit code %d, stdout %q, stderr %q", strings.Join(list, " "), code, stdout, stderr)
				}
			}
		})
	}
}

// Every command refuses a database without the tables and creates none.
func TestCommandsWithoutSchema(t *testing.T) {
	t.Parallel()
	testdb.EachIfLong(t, func(t *testing.T, url string) {
		s := &testRoster{T: t, url: url, dir: t.TempDir()}
		for _, args := range rosterCommands {
			s.wantError(1, `run "rota migrate up"`, args)
		}
	})
}

func TestCommandsRefuseBadInput(t *testing.T) {
	t.Parallel()
	testdb.EachIfLong(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newTestRoster(t, url)
		s.runs()
		for _, test := range []struct {
			args string
			code int
			want string
		}{
			{"run submit nope", 1, "rota: find nope: unknown task type\n"},
			{"run submit settle", 1, "rota: submit settle: mode is CONTINUOUS, and only task types of mode RUN have runs\n"},
			{"run submit extract --after nope", 1, "rota: find run nope in own_sign BASE: neither a run nor a task type has this name (see rota run list)\n"},
			{"run submit extract --not-before soon", 2, "rota: not-before (\"soon\") must be a time such as 2026-08-01T12:00:00Z, or a duration such as 90m\n"},
			{"run submit extract --attempts -1", 2, "max_attempts (-1) must be from 0 to 1000\n"},
			{"run submit extract --key " + strings.Repeat("k", 201), 2, "must have at most 200 bytes, not 201\n"},
			{"run list nope", 1, "rota: find nope: unknown task type\n"},
			{"run show nope", 1, "rota: find run nope in own_sign BASE: neither a run nor a task type has this name (see rota run list)\n"},
			{"run show settle", 1, "rota: read the newest run of settle$BASE: mode is CONTINUOUS, and only task types of mode RUN have runs\n"},
			{"run show idle", 1, "rota: find the newest run of idle$BASE: the task type has had no run (see rota run submit)\n"},
			{"run wait 01a1ff8a-c6d9-7620-bfda-be0b194fb52a", 1, "find run 01a1ff8a-c6d9-7620-bfda-be0b194fb52a in own_sign BASE: neither a run nor a task type has this name"},
			{"run rerun extract --dry-run", 1, "the run is in the wrong state: it is READY\n"},
			{"run cancel nope", 1, "find run nope in own_sign BASE: neither a run nor a task type has this name"},
			{"run show extract --own-sign TEST", 1, "rota: find the newest run of extract$TEST: the task type has had no run (see rota --own-sign TEST run submit)\n"},
			{"item drop settle nope --yes --own-sign TEST", 1, " (see rota --own-sign TEST item list)\n"},
			{"item retry settle -5", 2, "rota: unknown shorthand flag: '5' in -5; if it is an argument, write -- before it (see rota item retry --help)\n"},
			{"run submit --own-sign TEST", 2, "rota: run submit: missing argument TASK (see rota run submit --help)\n"},
			{"trigger list nope", 1, "rota: find nope: unknown task type\n"},
			{"trigger apply x --task nope --every 1h", 2, "rota: trigger x: target \"nope\": unknown task type\n"},
			{"trigger apply x --task settle --every 1h", 2, "rota: trigger x: target \"settle\": mode is CONTINUOUS, and only task types of mode RUN have runs\n"},
			{"trigger pause nope", 1, "rota: find trigger nope in own_sign BASE: unknown trigger\n"},
			{"trigger resume nope", 1, "rota: find trigger nope in own_sign BASE: unknown trigger\n"},
			{"trigger fire nope", 1, "rota: find trigger nope in own_sign BASE: unknown trigger\n"},
			{"trigger delete nope --yes", 1, "rota: find trigger nope in own_sign BASE: unknown trigger\n"},

			{"run submit", 2, "rota: run submit: missing argument TASK (see rota run submit --help)\n"},
			{"run submit extract --dry-run --attempts 5000", 2, "rota: max_attempts (5000) must be from 0 to 1000\n"},
			{"run submit extract --dry-run --priority 2000000000000000000", 2, "rota: priority (2000000000000000000) must be between"},
			{"run submit extract --dry-run --not-before 9999-01-01T00:00:00Z", 2, "rota: not_before (9999-01-01T00:00:00Z) must be in the years 1000 to 9899\n"},
			{"run list --state LOST", 2, "must be WAITING, READY, RUNNING, SUCCESS, FAILED, DEPENDENT_FAILED, CANCELLED or SKIPPED"},
			{"run list --limit 0", 2, "rota: --limit (0) must be at least 1\n"},
			{"run wait extract --timeout -1s", 2, "rota: --timeout (-1s) must not be negative\n"},
			{"run wait extract --timeout soon", 2, `invalid argument "soon" for "--timeout" flag`},
			{"trigger apply x --every 1h", 2, "rota: the task type is missing\n"},
			{"trigger apply x --task extract", 2, "rota: cron, every or at is missing\n"},
			{"trigger apply x --task extract --cron * --every 1h", 2, "rota: give only one: cron, every or at\n"},
			{"trigger apply x --task extract --cron 0", 2, `rota: trigger x: expression: cron "0": has 1 field`},
			{"trigger apply x --task extract --every soon", 2, `rota: trigger x: expression ("soon") of kind EVERY must be a duration from 1s to 8760h`},
			{"trigger apply x --task extract --every 1ms", 2, `rota: trigger x: expression ("1ms") of kind EVERY must be a duration from 1s to 8760h`},
			{"trigger apply x --task extract --at noon", 2, `rota: trigger x: expression ("noon") of kind ONCE must be a time with its offset`},
			{"trigger apply x --task extract --every 1h --time-zone Asia/Tokyo", 2, "rota: time-zone (Asia/Tokyo) is only for cron\n"},
			{"trigger apply x --task extract --cron @daily --time-zone Mars", 2, `rota: trigger x: time_zone ("Mars") must be`},
			{"trigger apply x --task extract --every 1h --start noon", 2, "rota: start (\"noon\") must be a time such as 2026-08-01T12:00:00Z, or a duration such as 90m\n"},
			{"trigger apply x --task extract --every 1h --start 2026-12-01T02:00:00Z --end 2026-11-01T02:00:00Z", 2, "rota: trigger x: end_at (2026-11-01T02:00:00Z) must not be before start_at (2026-12-01T02:00:00Z)\n"},
			{"trigger apply x --task extract --every 1h --max-fires -1", 2, "rota: trigger x: max_fires (-1) must be between 0 and 1000000000000\n"},
			{"trigger apply x --task extract --every 1h --misfire TWO", 2, "must be ONE, SKIP or ALL"},
			{"trigger apply x --task extract --every 1h --misfire-after 0", 2, "rota: misfire-after (0s) must be at least 1ms\n"},
			{"trigger apply x --task extract --every 1h --catchup-max 0", 2, "rota: catchup-max (0) must be at least 1\n"},
			{"trigger apply x --task extract --every 1h --overlap BOTH", 2, "must be SKIP or WAIT"},

			{"task show nope", 1, "rota: nope: unknown task type\n"},
			{"task pause nope", 1, "rota: find nope: unknown task type\n"},
			{"task resume nope", 1, "rota: find nope: unknown task type\n"},
			{"task delete nope --yes", 1, "rota: find nope: unknown task type\n"},
			{"task delete extract --dry-run", 1, "rota: delete extract$BASE: report runs after it: change report first\n"},
			{"task delete settle --dry-run", 1, "rota: delete settle$BASE: 2 live workers still serve it in BASE: stop all workers first\n"},
			{"task set report after= mode=CONTINUOUS --dry-run", 2, "rota: apply report$BASE: mode must not change from RUN to CONTINUOUS: run "},
			{"task set extract after=report --dry-run", 2, "rota: apply extract$BASE: a cycle: extract after report after extract\n"},
			{"task set extract after=nope --dry-run", 2, "rota: apply extract$BASE: after nope: unknown task type (see rota task list)\n"},
			{"task set settle after=extract --dry-run", 2, "after (extract) must not be set where mode is CONTINUOUS"},
			{"queue list nope", 1, "rota: find nope: unknown task type\n"},
			{"queue pin settle 99 zone=b", 1, "find queue \"99\" of settle$BASE: there is no queue of that name\n"},
			{"queue pin settle 0 zone --dry-run", 2, "rota: labels (\"zone\") must be a list of labels such as zone=b or disk=ssd|nvme,zone=b\n"},
			{"queue pin settle 0", 2, "rota: queue pin: missing argument LABELS (see rota queue pin --help)\n"},
			{"queue add nope x", 1, "rota: find nope: unknown task type\n"},
			{"queue add settle x", 1, "the queues have numbers, so that only their number can change: rota task set settle queues=5\n"},
			{"queue add regions north --dry-run", 1, "there is a queue of that name\n"},
			{"queue remove nope x --yes", 1, "rota: find nope: unknown task type\n"},
			{"queue remove regions nope --dry-run", 1, "there is no queue of that name\n"},
			{"worker list nope", 1, "rota: find nope: unknown task type\n"},
			{"worker drain nope", 1, "rota: find worker nope in own_sign BASE: unknown worker (see rota worker list)\n"},
			{"worker weight nope 2", 1, "rota: find worker nope in own_sign BASE: unknown worker (see rota worker list)\n"},
			{"worker weight web1:1 heavy", 2, "rota: weight (heavy) must be a whole number from 0 to 1000\n"},
			{"worker weight web1:1 1001", 2, "rota: weight (1001) must be a whole number from 0 to 1000\n"},
			{"worker weight web1:1", 2, "rota: worker weight: missing argument WEIGHT (see rota worker weight --help)\n"},
			{"plan settle --weight web1", 2, "rota: --weight (web1) must be WORKER=WEIGHT\n"},
			{"plan settle --weight web1=x", 2, "rota: --weight (web1=x): weight (x) must be a whole number from 0 to 1000\n"},
			{"worker pause nope", 1, "rota: find worker nope in own_sign BASE: unknown worker (see rota worker list)\n"},
			{"worker resume nope", 1, "rota: find worker nope in own_sign BASE: unknown worker (see rota worker list)\n"},
			{"queue list --worker nope", 1, "rota: find worker nope in own_sign BASE: unknown worker (see rota worker list)\n"},
			{"item list nope", 1, "rota: find nope: unknown task type\n"},
			{"item retry nope a", 1, "rota: find nope: unknown task type\n"},
			{"item retry settle", 2, "rota: give either the keys of failed items or all of them\n"},
			{"item drop settle a --all --yes", 2, "rota: give either the keys of failed items or all of them\n"},
			{"item retry settle a", 1, "rota: settle$BASE: there is no such failed item: a (see rota item list)\n"},
			{"plan settle --by-load", 1, "rota: preview settle$BASE: no queue has a measured load: the dealer counts no backlog, or has counted once so far\n"},
			{"plan nope", 1, "rota: find nope: unknown task type\n"},
			{"plan settle --remove nope", 1, "rota: find worker nope in own_sign BASE: unknown worker (see rota worker list)\n"},
			{"plan regions --remove web1:1", 2, "rota: plan regions without worker web1:1:00000001: the worker serves another task type: settle\n"},
			{"plan settle --add -1", 2, "rota: --add (-1) must be between 0 and 100000\n"},
			{"top nope --once", 1, "rota: nope: unknown task type\n"},
			{"doctor nope", 1, "rota: diagnose: nope: unknown task type\n"},

			{"task show", 2, "rota: task show: missing argument TASK (see rota task show --help)\n"},
			{"queue add settle", 2, "rota: queue add: missing argument QUEUE (see rota queue add --help)\n"},
			{"task show settle regions", 2, `rota: task show: unexpected argument "regions" (see rota task show --help)` + "\n"},
			{"task list -o xml", 2, `rota: invalid argument "xml" for "-o, --output" flag: must be table, json or csv (see rota task list --help)` + "\n"},
			{"queue list --status LOST", 2, "must be HELD, MOVING, OVERDUE, ORPHAN, RESERVED or UNASSIGNED"},
			{"task list --watch=1ms", 2, "rota: --watch (1ms) must be at least 100ms\n"},
			{"event list --since -1h", 2, "rota: --since (-1h0m0s) must not be negative\n"},
			{"event list --kind LOST", 2, "rota: --kind (LOST) must be JOINED, LEFT, "},
			{"event list nope", 1, "rota: find nope: unknown task type\n"},
			{"event list nope --follow", 1, "rota: find nope: unknown task type\n"},
			{"event list --limit 0", 2, "rota: --limit (0) must be at least 1\n"},
			{"event list --limit many", 2, `invalid argument "many" for "--limit" flag`},
		} {
			if test.code == 2 && !strings.HasPrefix(url, "sqlite:") {
				continue // the command fails before it connects
			}
			s.wantError(test.code, test.want, test.args)
		}
		s.join("web1:1:00000003")
	})
}

var grants = regexp.MustCompile(`(?m)^GRANT (.*) TO (\w+);$`)

// as creates a database role with the grants of docs/security.md, and returns the same roster connected as that role.
func (s *testRoster) as(kind, role string) *testRoster {
	s.Helper()
	name := fmt.Sprintf("%s_%d", role, rand.Uint32())
	s.exec(map[string]string{testdb.Postgres: "CREATE ROLE " + name + " LOGIN PASSWORD 'secret'", testdb.MySQL: "CREATE USER " + name + " IDENTIFIED BY 'secret'"}[kind])
	drop := map[string]string{testdb.Postgres: "DROP OWNED BY " + name + "; DROP ROLE " + name, testdb.MySQL: "DROP USER " + name}[kind]
	s.Cleanup(func() {
		for statement := range strings.SplitSeq(drop, "; ") {
			if _, err := s.c.DB().ExecContext(context.WithoutCancel(s.Context()), statement); err != nil {
				s.Error(err)
			}
		}
	})
	readme, err := os.ReadFile("../../docs/security.md")
	s.must(err)
	n := 0
	for _, grant := range grants.FindAllStringSubmatch(string(readme), -1) {
		if grant[2] == role {
			s.exec("GRANT " + grant[1] + " TO " + name)
			n++
		}
	}
	if n == 0 {
		s.Fatalf("docs/security.md grants nothing to %s", role)
	}
	u, err := url.Parse(s.url)
	s.must(err)
	u.User = url.UserPassword(name, "secret")
	return &testRoster{s.T, u.String(), s.dir, s.c}
}

// With the grants of docs/security.md an operator can read everything and change nothing, and an admin can do everything.
func TestRightsOfGrants(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{testdb.Postgres, testdb.MySQL} {
		t.Run(kind, func(t *testing.T) {
			s := newTestRoster(t, testdb.URL(t, kind))
			s.file("  settle: {queues: 5, execute_number: 11}\n  regions: {queues: [north, west]}\n  push: {queues: 2}\n")
			s.runs()
			s.must(failures.Of(s.c.Roster()).Save(s.Context(), "settle", []failures.Item{{Key: "a", QueueID: "0", State: ops.ItemDead}}))
			operator, admin := s.as(kind, "operator"), s.as(kind, "admin")
			operator.wantOutput("trigger apply nightly --task extract --every 1h --dry-run", `kind +CRON +EVERY`)
			for _, args := range rosterCommands {
				switch {
				case regexp.MustCompile(`^run wait|^task wait|^trigger apply|^run ack|^run rerun`).MatchString(args): // they print more than one line, or find nothing to do
				case regexp.MustCompile(`list|show|plan|top`).MatchString(args):
					operator.run(args)
				default:
					operator.wantError(1, "denied", args)
				}
			}
			stdout, _, _ := operator.try("doctor")
			if !strings.Contains(stdout, "NOTE     PRIVILEGES        this role lacks rights that a worker needs: INSERT ON schedule_task_type; ") {
				t.Error(stdout)
			}
			operator.wantOutput("task apply --dry-run", `execute_number +10 +11`)
			for _, args := range []string{
				"task apply --yes", "task pause settle", "task resume settle", "worker pause web2:2", "worker resume web2:2",
				"worker drain web2:2", "worker drain web1:1 --force", "item retry settle --all", "queue add regions south",
				"queue remove regions north --yes", "task delete push --yes", "trigger fire nightly", "run submit extract", "run pause extract", "run resume extract",
				"run cancel extract", "run rerun extract", "trigger apply hourly --task extract --every 1h", "trigger pause nightly", "trigger resume nightly",
				"trigger delete nightly --yes",
			} {
				admin.run(args)
			}
			if _, stderr, code := admin.try("item drop settle --all --yes"); code != 0 { // it says what a drop means
				t.Error(stderr)
			}
		})
	}
}
