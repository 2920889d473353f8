package metrics_test

import (
	"fmt"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/manager/metrics"
)

// A program gives the metrics to the manager and to a registry of its own.
func Example() {
	var c *center.Center // as center.Open returns it
	serve := func(tasks ...manager.Task) error {
		mx := metrics.New()
		m, err := manager.New(c, manager.Config{Logger: slog.Default(), Observer: mx, Hooks: mx.Hooks()}, tasks...)
		if err != nil {
			return err
		}
		mx.Watch(m, c)
		return prometheus.Register(mx)
	}
	fmt.Println(serve())
	// Output: no task: a manager needs at least one
}
