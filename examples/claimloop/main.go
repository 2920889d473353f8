// Command claimloop moves a table of jobs from a claim loop (FOR UPDATE SKIP LOCKED) to Rota: the loop does all jobs, then
// the loop and Rota share them, then Rota does all. It prints the rate and the commits of each step, and counts the jobs
// that were done twice or not at all. jobs.go has both ways; docs/from-skip-locked.md explains the steps.
//
//	go run ./examples/claimloop postgres://app@localhost/empty
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/postgres"
	"github.com/dutyrota/rota/manager"
)

// workers is the number of loops, and of calls that Rota has in flight.
const workers = 4

func main() {
	if len(os.Args) != 2 {
		log.Fatal("want the URL of an empty PostgreSQL database")
	}
	report, err := run(context.Background(), os.Args[1], 20_000)
	fmt.Print(report)
	if err != nil {
		log.Fatal(err)
	}
}

// step is a way to do all jobs: the loops do those of the queues that are not below from, Rota those below below.
type step struct {
	name        string
	from, below int // equal, or both would do some jobs
	page        int // jobs in one transaction
}

var steps = []step{
	{"loop", 0, 0, 1},
	{"side by side", 2, 2, 1},
	{"side by side", 6, 6, 1},
	{"Rota", total, total, 1},
	{"loop", 0, 0, 100},
	{"side by side", 4, 4, 100},
	{"Rota", total, total, 100},
}

// run takes the steps one after the other, each with n new jobs, and returns a table of them.
func run(ctx context.Context, url string, n int) (report string, err error) {
	c, err := center.Open(ctx, postgres.URL(url), center.Options{Schema: center.SchemaCreate})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if _, err := c.DB().ExecContext(ctx, tables); err != nil {
		return "", err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%-13s %7s %5s %7s %19s %6s %5s\n", "step", "of Rota", "page", "jobs/s", "commits/1,000 jobs", "twice", "lost")
	var bad int
	for _, s := range steps {
		r, err := s.measure(ctx, url, c.DB(), n)
		if err != nil {
			return text.String(), fmt.Errorf("%s, pages of %d: %w", s.name, s.page, err)
		}
		bad += r.twice + r.lost
		fmt.Fprintf(&text, "%-13s %7d %5d %7.0f %19.0f %6d %5d\n", s.name, s.below, s.page, r.rate, r.commits, r.twice, r.lost)
	}
	if bad > 0 {
		err = errors.New("jobs were done twice, or not at all")
	}
	return text.String(), err
}

// result is what a step has measured.
type result struct {
	rate        float64 // jobs a second
	commits     float64 // per 1,000 jobs
	twice, lost int
}

// measure makes n jobs of 500 tenants, and does them. The looks whether jobs are left do not count as commits.
func (s step) measure(ctx context.Context, url string, db *sql.DB, n int) (r result, err error) {
	_, err = db.ExecContext(ctx, `TRUNCATE jobs, effects`)
	if err != nil {
		return r, err
	}
	_, err = db.ExecContext(ctx, `INSERT INTO jobs (tenant, name) SELECT i % 500, 'job ' || i FROM generate_series(1, $1) i`, n)
	if err != nil {
		return r, err
	}
	before, err := commits(ctx, db)
	if err != nil {
		return r, err
	}
	began, looks := time.Now(), 0
	err = s.work(ctx, url, func(ctx context.Context, db *sql.DB) error {
		for left := n; left > 0; looks++ {
			time.Sleep(20 * time.Millisecond)
			if err := db.QueryRowContext(ctx, `SELECT COUNT(*) FROM jobs WHERE state = 'NEW'`).Scan(&left); err != nil {
				return err
			}
		}
		r.rate = float64(n) / time.Since(began).Seconds()
		return nil
	})
	if err != nil {
		return r, err
	}
	after, err := commits(ctx, db)
	if err != nil {
		return r, err
	}
	r.commits = float64(after-before-looks) / float64(n) * 1000
	return r, db.QueryRowContext(ctx, `SELECT (SELECT COUNT(*) - COUNT(DISTINCT job) FROM effects),
		(SELECT COUNT(*) FROM jobs WHERE id NOT IN (SELECT job FROM effects))`).Scan(&r.twice, &r.lost)
}

// work runs loops and a worker of Rota until await returns. It closes all connections.
func (s step) work(ctx context.Context, url string, await func(context.Context, *sql.DB) error) error {
	db, err := sql.Open("postgres", url)
	if err != nil {
		return err
	}
	defer db.Close()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	group, ctx := errgroup.WithContext(ctx)
	if s.from < total {
		for range workers {
			group.Go(func() error { return loop{db, s.page, s.from}.run(ctx) })
		}
	}
	if s.below > 0 {
		group.Go(func() error { return s.rotaWorker(ctx, url) })
	}
	err = await(ctx, db)
	stop()
	return errors.Join(err, group.Wait())
}

// rotaWorker is a worker of Rota until ctx ends.
func (s step) rotaWorker(ctx context.Context, url string) (err error) {
	c, err := center.Open(context.WithoutCancel(ctx), postgres.URL(url), center.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	// The settings in the database win over those in the code, so each size of a page has a task type of its own.
	m, err := manager.New(c, manager.Config{}, manager.Serve(fmt.Sprintf("jobs-%d", s.page), dealer{c.DB(), s.below},
		manager.Settings{Queues: total, ThreadNumber: workers, ExecuteNumber: s.page}))
	if err != nil {
		return err
	}
	return m.Run(ctx)
}

// commits returns the number of transactions that the database has committed.
func commits(ctx context.Context, db *sql.DB) (n int, err error) {
	time.Sleep(200 * time.Millisecond) // sessions report their commits when they end
	err = db.QueryRowContext(ctx, `SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()`).Scan(&n)
	return n, err
}
