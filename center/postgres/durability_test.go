package postgres

import (
	"database/sql"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/internal/testdb"
)

// L9: the notes name a session without synchronous_commit and asynchronous standbys. A role without any right sees that
// a standby is there, and not how far it is behind.
func TestDurabilityOfAServer(t *testing.T) {
	t.Parallel()
	primary := testdb.Own(t, testdb.Postgres)
	superuser := open(t, primary.URL())
	exec := func(statements ...string) {
		t.Helper()
		for _, s := range statements {
			if _, err := superuser.ExecContext(t.Context(), s); err != nil {
				t.Fatal(err)
			}
		}
	}
	exec("CREATE ROLE app LOGIN")
	u, err := url.Parse(primary.URL())
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User("app")
	want := func(url string, want ...string) {
		t.Helper()
		var got string
		for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
			got = notesOf(t, open(t, url))
			if regexp.MustCompile("^" + strings.Join(want, "\n") + "$").MatchString(got) {
				return
			}
		}
		t.Errorf("got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
	const (
		durable = `OK a commit is acknowledged when it is on disk \(synchronous_commit = on\)`
		fsync   = `NOTE fsync = off: a crash of the machine loses or damages what was committed`
		behind  = `NOTE standbys that follow: 1, asynchronously, so that they may be behind, `
		lost    = `: a promotion loses the commits that the promoted one lacks, and an epoch may be used twice`
	)
	want(u.String(), durable, fsync)
	exec("ALTER ROLE app SET synchronous_commit = off")
	want(u.String(), `NOTE synchronous_commit = off: Rota's own transactions and fenced ones set it to on; `+
		`a crash of the server may take back what dealers commit without the fence`, fsync)
	exec("ALTER ROLE app RESET ALL")
	testdb.Standby(t, primary)
	want(u.String(), durable, fsync, behind+`this role may not see by how much \(GRANT pg_monitor\)`+lost)
	want(primary.URL(), durable, fsync, behind+`now by \d+ \w+`+lost)
	exec("ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()")
	want(u.String(), durable, fsync, `OK standbys that follow: 1; a commit waits for them \(synchronous_standby_names = \*\)`)
}

// notesOf returns the notes of a server, each as "STATUS finding".
func notesOf(t *testing.T, db *sql.DB) string {
	t.Helper()
	list, err := durabilityNotes(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, n := range list {
		status := "NOTE"
		if n.OK {
			status = "OK"
		}
		lines = append(lines, fmt.Sprint(status, " ", n.Finding))
	}
	return strings.Join(lines, "\n")
}
