package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"

	"github.com/dutyrota/rota/internal/sqldb"
)

// durability is what decides whether the server keeps the commits that it acknowledges (L9).
type durability struct {
	settings map[string]string // global variables
	replicas int
	hidden   bool // this user may not see whether there are replicas
	semiSync bool
}

// Global variables.
const (
	flushLog    = "innodb_flush_log_at_trx_commit"
	syncBinlog  = "sync_binlog"
	sessionList = "performance_schema" // without which MySQL does not show them
)

// durabilityNotes returns what an operator should know about commits that the server may lose.
func durabilityNotes(ctx context.Context, db *sql.DB) ([]sqldb.Note, error) {
	settings, err := show(ctx, db, "GLOBAL VARIABLES", flushLog, syncBinlog, "log_bin", wsrepOn, lockMode, sessionList)
	if err != nil {
		return nil, fmt.Errorf("ask for the durability: %w", err)
	}
	if _, tidb := settings[lockMode]; tidb { // it has the other settings, and they do nothing
		const finding = "TiDB acknowledges a commit when most of the copies in its storage are on disk"
		return []sqldb.Note{{Kind: "DURABILITY", OK: true, Finding: finding}}, nil
	}
	d := durability{settings: settings}
	if err := d.readReplicas(ctx, db); err != nil {
		return nil, fmt.Errorf("ask for the replicas: %w", err)
	}
	return d.notes(), nil
}

// readReplicas counts the replicas that are connected. MariaDB's status shows their number to every user. On MySQL each
// replica has a session, which a user without the right PROCESS does not see. MySQL cannot read the processlist of the
// information schema while a session runs a statement with a character of four bytes (error 3854).
func (d *durability) readReplicas(ctx context.Context, db *sql.DB) error {
	const (
		semiSync, semiSyncOld = "rpl_semi_sync_source_status", "rpl_semi_sync_master_status"
		connected             = "slaves_connected"
	)
	status, err := show(ctx, db, "GLOBAL STATUS", semiSync, semiSyncOld, connected)
	if err != nil {
		return err
	}
	d.semiSync = isOn(status[semiSync]) || isOn(status[semiSyncOld])
	if n, known := status[connected]; known {
		d.replicas, err = strconv.Atoi(n)
		return err
	}
	if !isOn(d.settings["log_bin"]) {
		return nil
	}
	var rights int
	err = db.QueryRowContext(ctx, `SELECT (SELECT COUNT(*) FROM performance_schema.processlist
		WHERE command LIKE 'Binlog Dump%'),
		(SELECT COUNT(*) FROM information_schema.user_privileges WHERE privilege_type = 'PROCESS')`).
		Scan(&d.replicas, &rights)
	d.hidden = rights == 0 || !isOn(d.settings[sessionList])
	return err
}

func (d durability) notes() (list []sqldb.Note) {
	add := func(problem bool, subject, hint, format string, args ...any) {
		list = append(list, sqldb.Note{
			Kind: "DURABILITY", Problem: problem, Subject: subject, Hint: hint, Finding: fmt.Sprintf(format, args...),
		})
	}
	ok := func(finding string) {
		list = append(list, sqldb.Note{Kind: "DURABILITY", OK: true, Finding: finding})
	}
	const twice = "loses commits that were acknowledged, and an epoch may be used twice"
	if flush := d.settings[flushLog]; flush != "1" {
		crash := "a crash of the machine"
		if flush == "0" {
			crash = "a crash of the server"
		}
		if isOn(d.settings[wsrepOn]) {
			crash += " at the same time as those of all other nodes"
		}
		add(true, flushLog, "SET GLOBAL "+flushLog+" = 1, and in the server's configuration", "%s = %s: %s %s", flushLog,
			flush, crash, twice)
	}
	if sync := d.settings[syncBinlog]; isOn(d.settings["log_bin"]) && sync != "1" {
		add(true, syncBinlog, "SET GLOBAL "+syncBinlog+" = 1, and in the server's configuration",
			"%s = %s, with a binary log: after a crash of the machine the server takes back what the log lacks, so that it %s",
			syncBinlog, sync, twice)
	}
	if len(list) == 0 {
		ok("a commit is acknowledged when it is on disk (" + flushLog + " = 1)")
	}
	const replicas = "replicas"
	const hint = "semi-synchronous replication (rpl_semi_sync_master_enabled; on MySQL rpl_semi_sync_source_enabled)"
	switch {
	case d.hidden && !d.semiSync:
		add(false, replicas, "to let it look: GRANT PROCESS ON *.* to this user, and performance_schema = ON in the "+
			"server's configuration", "this user may not see whether replicas follow asynchronously: a promotion of one "+twice)
	case d.replicas > 0 && d.semiSync:
		ok(fmt.Sprintf("replicas that follow: %d; a commit waits for one of them (semi-synchronous)", d.replicas))
	case d.replicas > 0:
		add(false, replicas, hint, "replicas that follow: %d, asynchronously, so that they may be behind: a promotion "+
			"of one "+twice, d.replicas)
	}
	return list
}
