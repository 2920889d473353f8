package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/dutyrota/rota/cmd/rota/internal/sqldealer"
	"github.com/dutyrota/rota/condition"
)

// heldBackAfter is the age at which a writing transaction becomes a problem for the cursors that wait for it.
const heldBackAfter = 5 * time.Minute

// holderFinding returns the finding about the transaction that holds a cursor back, or nothing.
func holderFinding(h *sqldealer.Holder) []condition.Condition {
	finding := func(status, hint, format string, args ...any) []condition.Condition {
		c := condition.New(condition.Cursor, "", fmt.Sprintf(format, args...), hint)
		c.Status = status
		return []condition.Condition{c}
	}
	switch {
	case h == nil || h.Age < heldBackAfter && !h.Hidden:
		return nil
	case h.Hidden:
		return finding(condition.Note, "GRANT pg_read_all_stats to this role",
			"rows that were written after the transaction of process %d began are not read, and this role may not see when "+
				"that was", h.PID)
	}
	since := fmt.Sprintf("rows of the last %s are not read until ", h.Age.Round(time.Second))
	if h.Prepared != "" {
		name := "'" + strings.ReplaceAll(h.Prepared, "'", "''") + "'"
		return finding(condition.Problem, fmt.Sprintf("COMMIT PREPARED %s or ROLLBACK PREPARED %[1]s", name),
			"%sthe prepared transaction %s ends", since, name)
	}
	return finding(condition.Problem, fmt.Sprintf("end it: SELECT pg_terminate_backend(%d)", h.PID),
		"%sprocess %d (%s, %s) ends its transaction, which has written", since, h.PID, h.Application, h.State)
}
