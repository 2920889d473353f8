package workercmd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/cmd/rota/internal/cli"
	"github.com/dutyrota/rota/cmd/rota/internal/sqldealer"
	"github.com/dutyrota/rota/config"
)

// checkRetry is the pause before the worker checks the statements again after the database was away.
const checkRetry = 2 * time.Second

// checkStatements returns an error if the database refuses statements of the file. While the database is away or busy,
// checkStatements waits, because such an error says nothing about the statements.
func (w *worker) checkStatements(ctx context.Context, c *center.Center) error {
	var errs []error
	for i, dealer := range w.dealers {
		err := dealer.Check(ctx, c.DB())
		for warned := false; err != nil && c.IsTransient(err) && ctx.Err() == nil; err = dealer.Check(ctx, c.DB()) {
			if !warned {
				w.log.WithError(err).Warn("statements not checked; trying again")
			}
			warned = true
			select {
			case <-ctx.Done():
			case <-time.After(checkRetry):
			}
		}
		switch {
		case sqldealer.Refused(err):
			errs = append(errs, fmt.Errorf("%s: %w", w.path, err))
		case err != nil && ctx.Err() == nil:
			w.log.WithError(err).Warn("statements not checked")
		case err == nil:
			w.warnOfScan(ctx, c, w.file.Tasks[i], dealer)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return cli.Usage(err)
	}
	return nil
}

// scanInterval is the pause between two looks for selects that scan a large table. A
// look counts at most LargeTable rows of each table.
const scanInterval = time.Hour

// watchScans warns again and again, until ctx is done, of selects that scan a large
// table: a table grows, and an index may be dropped.
func (w *worker) watchScans(ctx context.Context, c *center.Center) {
	next := time.NewTicker(scanInterval)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
		}
		for i, dealer := range w.dealers {
			w.warnOfScan(ctx, c, w.file.Tasks[i], dealer)
		}
	}
}

// warnOfScan warns of a select that scans a large table.
func (w *worker) warnOfScan(ctx context.Context, c *center.Center, task config.Task, dealer *sqldealer.Dealer) {
	log := w.log.WithField("task_type", task.Name)
	scan, err := dealer.ScanFirst(ctx, c, task.Settings)
	switch {
	case err != nil:
		log.WithError(err).Debug("select not explained")
	case scan != nil:
		log.Warnf("%s; %s", scan.Finding, scan.Hint)
	}
}
