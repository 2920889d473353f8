package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/cmd/rota/internal/sqldealer"
)

// heldBackAfter is the age at which a writing transaction becomes a problem for the cursors that wait for it.
const heldBackAfter = 5 * time.Minute

// holderFinding returns the finding about the transaction that holds a cursor back, and false if there is no problem.
func holderFinding(h *sqldealer.Holder) (f center.Finding, ok bool) {
	switch {
	case h == nil || h.Age < heldBackAfter && !h.Hidden:
		return f, false
	case h.Hidden:
		return center.Finding{
			Status:  center.FindingNote,
			Finding: fmt.Sprintf("rows that were written after the transaction of process %d began are not read, and this role may not see when that was", h.PID),
			Hint:    "GRANT pg_read_all_stats to this role",
		}, true
	}
	f.Status = center.FindingProblem
	since := fmt.Sprintf("rows of the last %s are not read until ", h.Age.Round(time.Second))
	if h.Prepared != "" {
		name := "'" + strings.ReplaceAll(h.Prepared, "'", "''") + "'"
		f.Finding = since + "the prepared transaction " + name + " ends"
		f.Hint = fmt.Sprintf("COMMIT PREPARED %s or ROLLBACK PREPARED %[1]s", name)
		return f, true
	}
	f.Finding = fmt.Sprintf("%sprocess %d (%s, %s) ends its transaction, which has written", since, h.PID, h.Application, h.State)
	f.Hint = fmt.Sprintf("end it: SELECT pg_terminate_backend(%d)", h.PID)
	return f, true
}
