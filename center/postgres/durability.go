package postgres

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/dutyrota/rota/internal/sqldb"
)

// durability is what decides whether the server keeps the commits that it acknowledges (L9).
type durability struct {
	commit string // synchronous_commit of a session that sets nothing
	fsync  string
	names  string // synchronous_standby_names

	standbys int
	behind   sql.NullString // how much the last of them lacks; NULL if the role may not see it
}

// durabilityQuery asks for a durability. A role without the rights of pg_monitor sees only that a standby is connected.
// A base backup and a logical subscription are no standbys.
const durabilityQuery = `SELECT current_setting('synchronous_commit'), current_setting('fsync'),
	current_setting('synchronous_standby_names'), CAST(COUNT(r.pid) AS integer),
	pg_size_pretty(MAX(pg_wal_lsn_diff(pg_current_wal_lsn(), r.flush_lsn)))
	FROM pg_stat_replication AS r WHERE r.state IS DISTINCT FROM 'backup' AND NOT EXISTS (
		SELECT 1 FROM pg_replication_slots AS s WHERE s.active_pid = r.pid AND s.slot_type = 'logical')`

// durabilityNotes returns what an operator should know about commits that the server may lose.
func durabilityNotes(ctx context.Context, db *sql.DB) ([]sqldb.Note, error) {
	var d durability
	err := db.QueryRowContext(ctx, durabilityQuery).Scan(&d.commit, &d.fsync, &d.names, &d.standbys, &d.behind)
	if err != nil {
		return nil, fmt.Errorf("ask for the durability: %w", err)
	}
	return d.notes(), nil
}

func (d durability) notes() []sqldb.Note {
	note := func(subject, hint, format string, args ...any) sqldb.Note {
		return sqldb.Note{Kind: "DURABILITY", Subject: subject, Hint: hint, Finding: fmt.Sprintf(format, args...)}
	}
	list := []sqldb.Note{{
		Kind: "DURABILITY", OK: true,
		Finding: "a commit is acknowledged when it is on disk (synchronous_commit = " + d.commit + ")",
	}}
	if d.commit != "on" && d.commit != "remote_apply" {
		list[0] = note("synchronous_commit", "ALTER ROLE ... SET synchronous_commit = on, if that is not intended",
			"synchronous_commit = %s: Rota's own transactions and fenced ones set it to on; a crash of the server may "+
				"take back what dealers commit without the fence", d.commit)
	}
	if d.fsync != "on" {
		list = append(list, note("fsync", "fsync = on in postgresql.conf",
			"fsync = %s: a crash of the machine loses or damages what was committed", d.fsync))
	}
	switch {
	case d.standbys == 0:
	case d.names != "":
		list = append(list, sqldb.Note{Kind: "DURABILITY", OK: true, Finding: fmt.Sprintf(
			"standbys that follow: %d; a commit waits for them (synchronous_standby_names = %s)", d.standbys, d.names)})
	default:
		behind := "this role may not see by how much (GRANT pg_monitor)"
		if d.behind.Valid {
			behind = "now by " + d.behind.String
		}
		list = append(list, note("standbys", "set synchronous_standby_names",
			"standbys that follow: %d, asynchronously, so that they may be behind, %s: a promotion loses the commits that the "+
				"promoted one lacks, and an epoch may be used twice", d.standbys, behind))
	}
	return list
}
