package moves

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/dutyrota/rota/bench/internal/stage"
)

// TestMain is also the worker process that the benchmark starts.
func TestMain(m *testing.M) {
	if !IsWorker() {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := Work(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func TestShort(t *testing.T) {
	part, err := Run(t.Context(), stage.ForTest(t), Short)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range part.Data.([]*Result) {
		// Two restarts and a kill move two queues each, there and back. The test sees a move only if an item ran
		// between two moves. A busy machine causes more moves.
		if len(r.Planned) < 4 || len(r.Resumed) == 0 || len(r.Soon) == 0 || len(r.Proved) == 0 || len(r.Overlaps) > 0 || r.Minimum < 12 || r.Moves < r.Minimum {
			t.Errorf("%+v", r)
		}
		if r.Database == stage.Name(stage.Postgres) && len(r.Polled) == 0 {
			t.Errorf("%s: no moves without hints", r.Database)
		}
		if len(r.Named.Away) != Short.Queues || r.Named.Moves != 0 || r.Named.Others <= 0 {
			t.Errorf("%s: workers with names: %+v", r.Database, r.Named)
		}
		if r.Calm <= 0 || r.Rolling <= 0 || len(r.Rates) == 0 {
			t.Errorf("%s: rates are missing: %+v", r.Database, r)
		}
	}
}

func TestShortSplits(t *testing.T) {
	part, err := RunSplits(t.Context(), stage.ForTest(t), ShortSplits)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range part.Data.([]*SplitResult) {
		if r.Calm <= 0 || r.During < 0 || r.Took <= 0 || r.Pause <= 0 || r.Twice+r.Lost > 0 {
			t.Errorf("%+v", r)
		}
	}
}

func TestMoved(t *testing.T) {
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	var r Result
	r.moved(span{end: at(10)}, span{begin: at(30)}, time.Time{})
	r.moved(span{end: at(10)}, span{begin: at(5)}, time.Time{})
	r.moved(span{end: at(10)}, span{begin: at(100)}, at(20))
	if fmt.Sprint(r.Planned, r.Resumed, len(r.Overlaps)) != "[20ms] [80ms] 1" {
		t.Errorf("%+v", r)
	}
	if got := rate([]span{{end: at(0)}, {end: at(999)}, {end: at(1000)}}, at(0), at(1000)); got != 2 {
		t.Errorf("the rate is %g, want 2", got)
	}
}
