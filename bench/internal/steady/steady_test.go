package steady

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/dutyrota/rota/bench/internal/stage"
)

func TestMain(m *testing.M) {
	if IsWorker() {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		if err := Work(ctx); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// The benchmark runs to its end on both databases, and each peer settles every row.
func TestShort(t *testing.T) {
	part, err := Run(t.Context(), stage.ForTest(t), Short)
	if err != nil {
		t.Fatal(err)
	}
	results, ok := part.Data.([]*Result)
	if !ok || len(results) != 2*len(peers)-1 || len(part.Tables) != 1 || len(part.Goals) != 2 {
		t.Fatalf("%d results, %d tables, %d goals", len(results), len(part.Tables), len(part.Goals))
	}
	for _, r := range results {
		if r.Peer != alone && (len(r.Rates) != 1 || r.Rates[0] <= 0 || r.Most[0] < r.Half[0] || r.Half[0] <= 0) {
			t.Errorf("%+v", r)
		}
	}
}
