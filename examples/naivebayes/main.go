// Command naivebayes classifies texts in four runs that depend on each other. The example was first
// used to explain Hadoop's JobControl:
//
//	extract --+--> prior --------+--> predict
//	          +--> conditional --+
//
// extract counts the words of each document. prior and conditional turn the counts into probabilities, in parallel.
// predict finds the most probable class of the documents without a class. Each is a task type of mode RUN with its
// documents or words partitioned over queues, and two workers share the queues. A run of extract creates the other three
// runs. At the end the program computes the same directly and compares.
//
//	go run ./examples/naivebayes
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/processor"
	"github.com/dutyrota/rota/runs"
)

func main() {
	dir, err := os.MkdirTemp("", "naivebayes-")
	if err != nil {
		log.Fatal(err)
	}
	report, err := run(context.Background(), "sqlite:"+filepath.Join(dir, "bayes.db"))
	if err := errors.Join(err, os.RemoveAll(dir)); err != nil {
		log.Fatal(err)
	}
	fmt.Print(report)
}

// run makes the tables, lets two workers do the runs, and returns the report.
func run(ctx context.Context, database string) (string, error) {
	c, err := center.Open(ctx, anydb.URL(database), center.Options{})
	if err != nil {
		return "", err
	}
	defer c.Close()
	documents := corpus()
	if err := createTables(ctx, c.DB(), documents); err != nil {
		return "", err
	}
	working, stop := context.WithCancel(ctx)
	defer stop()
	workers, working := errgroup.WithContext(working) // a failed worker ends the other and the waiting
	for range 2 {
		workers.Go(func() error { return work(working, database) })
	}
	report, err := classify(working, c, documents)
	stop()
	return report, errors.Join(err, workers.Wait())
}

// work is a worker. It could as well run in another program or on another host.
func work(ctx context.Context, database string) error {
	c, err := center.Open(context.WithoutCancel(ctx), anydb.URL(database), center.Options{})
	if err != nil {
		return err
	}
	defer c.Close()
	m, err := manager.New(c, manager.Config{},
		manager.Serve("extract", extract{c.DB()}, manager.Settings{Mode: center.ModeRun, Queues: 4, ExecuteNumber: 5}),
		manager.Serve("prior", processor.Each(prior{c.DB()}.compute), manager.Settings{
			Mode: center.ModeRun, Queues: 1, After: []runs.After{{Upstream: "extract"}},
		}),
		manager.Serve("conditional", processor.Each(conditional{c.DB()}.compute), manager.Settings{
			Mode: center.ModeRun, Queues: 4, After: []runs.After{{Upstream: "extract"}},
		}),
		manager.Serve("predict", predict{c.DB()}, manager.Settings{
			Mode: center.ModeRun, Queues: 4, ExecuteNumber: 5, After: []runs.After{{Upstream: "prior"}, {Upstream: "conditional"}},
		}))
	if err != nil {
		return err
	}
	return m.Run(ctx)
}

// classify submits a run of extract, waits for it and the runs that depend on it, and returns the report.
func classify(ctx context.Context, c *center.Center, documents []document) (string, error) {
	id, err := submit(ctx, c)
	if err != nil {
		return "", err
	}
	ended, err := wait(ctx, c, id)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%-12s %-8s items\n", "run of", "state")
	for _, r := range ended {
		fmt.Fprintf(&out, "%-12s %-8s %5d\n", r.TaskType, r.State, r.ItemsDone)
		if r.State != runs.Success {
			return "", fmt.Errorf("run of %s ended as %s: %s", r.TaskType, r.State, r.Message)
		}
	}
	predictions, err := compare(ctx, c.DB(), documents)
	return out.String() + "\n" + predictions, err
}

// submit submits a run of extract. It first waits until the workers have defined the dependencies: a run creates only
// the dependent runs that are known when it is submitted.
func submit(ctx context.Context, c *center.Center) (string, error) {
	for {
		predict, err := ops.New(c).Tasks().Settings(ctx, "predict")
		if err != nil && !errors.Is(err, center.ErrUnknownTask) {
			return "", err
		}
		if len(predict.After) == 2 {
			runID, _, err := ops.New(c).Runs().Submit(ctx, "extract", runs.Submission{})
			return runID, err
		}
		if err := pause(ctx); err != nil {
			return "", err
		}
	}
}

// wait waits until a run and all runs that depend on it have ended.
func wait(ctx context.Context, c *center.Center, id string) ([]runs.Run, error) {
	for {
		list, _, err := ops.New(c).Runs().Graph(ctx, id)
		if err != nil {
			return nil, err
		}
		open := 0
		for _, r := range list {
			if !r.Ended() {
				open++
			}
		}
		if open == 0 {
			return list, nil
		}
		if err := pause(ctx); err != nil {
			return nil, err
		}
	}
}

func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(100 * time.Millisecond):
		return nil
	}
}
