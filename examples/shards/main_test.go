package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/dutyrota/rota/internal/testdb"
)

const total = "all                    3200     3200      0     0"

// run returns an error if an invoice is paid twice or not at all.
func TestRun(t *testing.T) {
	for roster, shards := range map[string][]string{
		testdb.SQLite:   slices.Repeat([]string{testdb.SQLite}, 8),
		testdb.Postgres: slices.Repeat([]string{testdb.Postgres, testdb.MySQL}, 4),
	} {
		t.Run(roster, func(t *testing.T) {
			cl := cluster{roster: testdb.URL(t, roster)}
			for _, kind := range shards {
				cl.shards = append(cl.shards, testdb.URL(t, kind))
			}
			report, err := run(t.Context(), cl)
			if err != nil || !strings.Contains(report, total) {
				t.Errorf("got %v, want %q in:\n%s", err, total, report)
			}
		})
	}
}

func TestNumberOfDatabases(t *testing.T) {
	for _, urls := range [][]string{make([]string, 1), make([]string, 34)} {
		if _, err := runIn(t.Context(), urls); err == nil || !strings.Contains(err.Error(), "1 to 32 shards") {
			t.Errorf("%d URLs: got %v, want an error with the right number", len(urls), err)
		}
	}
}
