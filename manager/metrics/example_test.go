package metrics_test

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/manager/metrics"
)

// A program makes a manager with its metrics, and gives them to a registry of its own.
func Example() {
	var c *center.Center // as center.Open returns it
	serve := func(tasks ...manager.Task) error {
		m, mx, err := metrics.NewManager(c, manager.Config{Logger: slog.Default()}, tasks...)
		if err != nil {
			return err
		}
		if err := prometheus.Register(mx); err != nil {
			return err
		}
		return m.Run(context.Background())
	}
	fmt.Println(serve())
	// Output: no task: a manager needs at least one
}
