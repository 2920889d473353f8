package workercmd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/cmd/rota/internal/cli"
	"github.com/dutyrota/rota/cmd/rota/internal/sqldealer"
	"github.com/dutyrota/rota/config"
)

// checkRetry is the pause before the worker checks the statements again after the database was away.
const checkRetry = 2 * time.Second

// dataPatience is how long a check of the statements waits for a data database at the start.
const dataPatience = 5 * time.Second

// checkStatements returns an error if a database refuses statements of the file. While the roster's database is away or
// busy, checkStatements waits, because such an error says nothing about the statements. It waits for no data database:
// while one is away, the worker works the queues of the others.
func (w *worker) checkStatements(ctx context.Context, c *center.Center) error {
	byDatabase := map[string][]placed{}
	for _, p := range w.dealers {
		for _, at := range p.dealer.Places(p.task.Settings) {
			byDatabase[at.Name()] = append(byDatabase[at.Name()], placed{p.task, at})
		}
	}
	names := slices.Sorted(maps.Keys(byDatabase))
	errs := make([]error, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() { errs[i] = w.checkIn(ctx, c, name, byDatabase[name]) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return cli.Usage(err)
	}
	return nil
}

// placed is the dealer of a task in one database.
type placed struct {
	task   config.Task
	dealer *sqldealer.Dealer
}

// checkIn returns what one database refuses. After another error of a data database, it asks that database no more.
func (w *worker) checkIn(ctx context.Context, c *center.Center, database string, list []placed) error {
	var errs []error
	for _, p := range list {
		err := w.check(ctx, c, p)
		switch {
		case sqldealer.Refused(err):
			errs = append(errs, fmt.Errorf("%s: %w", w.path, err))
		case err != nil && ctx.Err() == nil:
			if database != "" {
				log := w.log.WithError(err).WithField("database", c.Data(database).Address())
				log.Warn("statements not checked: the data database cannot be used")
				return errors.Join(errs...)
			}
			w.log.WithError(err).Warn("statements not checked")
		case err == nil:
			if err := p.dealer.PeekRefused(); err != nil {
				const text = "idle queues cost a select each: the database refuses the select as a part of another statement"
				w.log.WithError(err).WithField("task_type", p.task.Name).Warn(text)
			}
			w.warnOfScan(ctx, c, p)
		}
	}
	return errors.Join(errs...)
}

// check asks a database what it says about the statements of a task. It waits for the roster's database.
func (w *worker) check(ctx context.Context, c *center.Center, p placed) error {
	if p.dealer.Name() != "" {
		ctx, cancel := context.WithTimeout(ctx, dataPatience)
		defer cancel()
		return p.dealer.Check(ctx)
	}
	err := p.dealer.Check(ctx)
	for warned := false; err != nil && c.IsTransient(err) && ctx.Err() == nil; err = p.dealer.Check(ctx) {
		if !warned {
			w.log.WithError(err).Warn("statements not checked; trying again")
		}
		warned = true
		select {
		case <-ctx.Done():
		case <-time.After(checkRetry):
		}
	}
	return err
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
		for _, p := range w.dealers {
			for _, at := range p.dealer.Places(p.task.Settings) {
				w.warnOfScan(ctx, c, placed{p.task, at})
			}
		}
	}
}

// warnOfScan warns of a select that scans a large table.
func (w *worker) warnOfScan(ctx context.Context, c *center.Center, p placed) {
	log := w.log.WithField("task_type", p.task.Name)
	scan, err := p.dealer.ScanFirst(ctx, c.OwnSign(), p.task.Settings)
	switch {
	case err != nil:
		log.WithError(err).Debug("select not explained")
	case scan != nil:
		log.Warnf("%s; %s", scan.Finding, scan.Hint)
	}
}
