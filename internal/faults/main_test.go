//go:build linux

package faults

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/dutyrota/rota/internal/testdb"
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
	testdb.EveryEngine()
	flag.Parse()
	// Scenarios wait more than they compute, so that several can share a processor. TiDB computes more.
	parallel := "6"
	if os.Getenv("ROTA_TEST_DATABASES") == testdb.TiDB {
		parallel = "2"
	}
	if err := flag.Set("test.parallel", parallel); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(buildDir) // in the directory for what is temporary
		os.Exit(code)
	}))
}
