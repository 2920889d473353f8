package ops

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/runs"
)

// checkModeChange refuses to end mode RUN while the task type has open runs or backfills, dependants or triggers in any
// own_sign (R14): nothing would open, fire or end them. It locks the lock rows of the task type first, so that no run
// is made meanwhile.
func checkModeChange(ctx context.Context, l *roster.LockTx, d SettingsDiff) error {
	ends := d.Settings.WithDefaults().Mode != center.ModeRun
	if !ends || !slices.ContainsFunc(d.Changes, func(c runs.Difference) bool { return c.Name == "mode" }) {
		return nil
	}
	if _, err := l.Exec(ctx, `UPDATE schedule_task_running SET version = version + 1 WHERE task_type = ?`, l.TaskType); err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	var blockers []error
	for _, b := range []struct{ query, text string }{
		{
			`SELECT run_id, own_sign FROM schedule_run WHERE task_type = ? AND state IN ('` + runs.RunWaiting + `', '` + runs.RunReady + `', '` + runs.RunRunning + `') ORDER BY run_id LIMIT 1`,
			"run %s (own_sign %s) is open: wait for its end or cancel it (rota run cancel)",
		},
		{
			`SELECT backfill_id, own_sign FROM schedule_backfill WHERE task_type = ? AND state = '` + runs.BackfillRunning + `' ORDER BY backfill_id LIMIT 1`,
			"backfill %s (own_sign %s) is open: wait for its end or cancel it (rota run backfill cancel)",
		},
		{
			`SELECT task_type, rule FROM schedule_task_after WHERE upstream = ? ORDER BY task_type LIMIT 1`,
			"task type %s runs after it (%s): take it out of its after first",
		},
		{
			`SELECT name, own_sign FROM schedule_trigger WHERE target = ? ORDER BY name, own_sign LIMIT 1`,
			"trigger %s (own_sign %s) fires it: delete the trigger first (rota trigger delete)",
		},
	} {
		type blocker struct{ Name, Detail string }
		found, err := sqldb.Records[blocker](ctx, l, b.query, l.TaskType)
		if err != nil {
			return fmt.Errorf("look for what mode RUN holds: %w", err)
		}
		for _, f := range found {
			blockers = append(blockers, fmt.Errorf("mode must not change from RUN to CONTINUOUS: "+b.text, f.Name, f.Detail))
		}
	}
	return errors.Join(blockers...)
}
