//go:build linux

package faults

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain is also the main function of the worker processes that the scenarios start.
func TestMain(m *testing.M) {
	if order := os.Getenv(orderVariable); order != "" {
		if err := work(order); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	flag.Parse()
	// Scenarios wait more than they compute, so that several can share a processor.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}
