package mysql

import (
	"database/sql"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/internal/testdb"
)

// texts returns the notes of a server as "STATUS finding".
func texts(t *testing.T, db *sql.DB) []string {
	t.Helper()
	list, err := durabilityNotes(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	return statuses(list)
}

func statuses(list []sqldb.Note) (texts []string) {
	for _, n := range list {
		status := map[[2]bool]string{{true, false}: "OK ", {false, true}: "PROBLEM ", {false, false}: "NOTE "}[[2]bool{n.OK, n.Problem}]
		texts = append(texts, status+n.Finding)
	}
	return texts
}

// L9: a server that loses acknowledged commits in a crash is a problem, and an asynchronous replica is a note. A user
// without any right on the server sees both.
func TestDurabilityOfAServer(t *testing.T) {
	t.Parallel()
	primary, replica := testdb.Replicated(t)
	db, follower := open(t, primary.URL(), sqldb.RoleDealers), open(t, replica.URL(), sqldb.RoleDealers)
	exec := func(db *sql.DB, statements ...string) {
		t.Helper()
		for _, s := range statements {
			if _, err := db.ExecContext(t.Context(), s); err != nil {
				t.Fatal(err)
			}
		}
	}
	exec(db, "GRANT ALL ON test.* TO app@'127.0.0.1' IDENTIFIED BY 'app'")
	app := open(t, strings.Replace(primary.URL(), "root@", "app:app@", 1), sqldb.RoleDealers)
	want := func(step string, want ...string) {
		t.Helper()
		deadline := time.Now().Add(30 * time.Second)
		got := texts(t, app)
		for ; !slices.Equal(got, want) && time.Now().Before(deadline); got = texts(t, app) {
			time.Sleep(50 * time.Millisecond) // a replica connects in its own time
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step, diff)
		}
	}
	const (
		lost    = "loses commits that were acknowledged, and an epoch may be used twice"
		binlog  = "PROBLEM sync_binlog = 0, with a binary log: after a crash of the machine the server takes back what the log lacks, so that it " + lost
		durable = "OK a commit is acknowledged when it is on disk (innodb_flush_log_at_trx_commit = 1)"
	)
	want("MariaDB's default", binlog)
	exec(db, "SET GLOBAL sync_binlog = 1")
	want("both", durable)
	exec(db, "SET GLOBAL innodb_flush_log_at_trx_commit = 2")
	want("once in a second", "PROBLEM innodb_flush_log_at_trx_commit = 2: a crash of the machine "+lost)
	exec(db, "SET GLOBAL innodb_flush_log_at_trx_commit = 0")
	want("not even written", "PROBLEM innodb_flush_log_at_trx_commit = 0: a crash of the server "+lost)
	exec(db, "SET GLOBAL innodb_flush_log_at_trx_commit = 1")
	exec(follower, testdb.Follow(primary)...)
	want("a replica", durable,
		"NOTE replicas that follow: 1, asynchronously, so that they may be behind: a promotion of one "+lost)
	exec(follower, "STOP SLAVE", "SET GLOBAL rpl_semi_sync_slave_enabled = ON")
	exec(db, "SET GLOBAL rpl_semi_sync_master_enabled = ON")
	exec(follower, "START SLAVE")
	want("a semi-synchronous replica", durable,
		"OK replicas that follow: 1; a commit waits for one of them (semi-synchronous)")
}

// L9: what MySQL does not tell every user, and what the nodes of a cluster lose only together.
func TestDurabilityNotes(t *testing.T) {
	for want, d := range map[string]durability{
		"NOTE this user may not see whether replicas follow asynchronously": {
			settings: map[string]string{flushLog: "1", "log_bin": "ON", syncBinlog: "1"}, hidden: true,
		},
		"PROBLEM innodb_flush_log_at_trx_commit = 0: a crash of the server at the same time as those of all other nodes loses": {
			settings: map[string]string{flushLog: "0", wsrepOn: "ON", syncBinlog: "0"},
		},
	} {
		got := statuses(d.notes())
		if !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, want) }) {
			t.Errorf("%+v: got %q, want %q", d, got, want)
		}
	}
}
