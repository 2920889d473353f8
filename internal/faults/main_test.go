//go:build linux

package faults

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain is also the worker process that the scenarios start.
func TestMain(m *testing.M) {
	if order := os.Getenv(orderVariable); order != "" {
		if err := work(order); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	flag.Parse()
	// Scenarios wait more than they compute. One per processor would take as long as all of them in a row.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}
