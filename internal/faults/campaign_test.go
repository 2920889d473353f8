//go:build linux

package faults

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/dutyrota/rota/internal/testdb"
)

// TestCampaign plays all scenarios, round after round, for ROTA_FAULTS_MINUTES minutes. Each round has the next seed. A
// play that has begun by then is played to its end. The test prints a table of the plays.
func TestCampaign(t *testing.T) {
	text := os.Getenv("ROTA_FAULTS_MINUTES")
	if text == "" {
		t.Skip("only with ROTA_FAULTS_MINUTES")
	}
	minutes, err := strconv.ParseFloat(text, 64)
	if err != nil || minutes <= 0 {
		t.Fatalf("ROTA_FAULTS_MINUTES (%q) must be a number above 0", text)
	}
	first, end := seed(t), time.Now().Add(time.Duration(minutes*float64(time.Minute)))
	c := campaign{}
	for round := uint64(0); round == 0 || time.Now().Before(end); round++ {
		fmt.Fprintf(os.Stderr, "round %d, seed %d, %s left\n", round+1, first+round, time.Until(end).Round(time.Second))
		t.Run(fmt.Sprintf("round-%d", round+1), func(t *testing.T) {
			for _, p := range plays(testdb.Kinds(t)) {
				score := c.of(p.kind, p.scenario.name)
				t.Run(p.name(), func(t *testing.T) {
					t.Parallel()
					if time.Now().After(end) {
						t.Skip("ROTA_FAULTS_MINUTES have passed")
					}
					score.play(t, p.kind, p.scenario, first+round)
				})
			}
		})
	}
	if err := c.print(first); err != nil {
		t.Fatal(err)
	}
}

// campaign is the scores of the plays, in the order of the scenarios.
type campaign struct{ scores []*score }

// score is the result of a scenario on one kind of database.
type score struct {
	kind, scenario string

	mu                             sync.Mutex
	runs, failed, items, violation int
}

// of returns the score of a scenario. It makes the score in the first round.
func (c *campaign) of(kind, scenario string) *score {
	for _, s := range c.scores {
		if s.kind == kind && s.scenario == scenario {
			return s
		}
	}
	s := &score{kind: kind, scenario: scenario}
	c.scores = append(c.scores, s)
	return s
}

func (s *score) play(t *testing.T, kind string, sc scenario, seed uint64) {
	t.Cleanup(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.runs++
		if t.Failed() {
			s.failed++
		}
	})
	sc.checked = func(h History, found []Violation) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.items, s.violation = s.items+len(h.Items), s.violation+len(found)
	}
	sc.run(t, kind, seed)
}

// print prints the scores. A run can fail without a violation, for example because it does not come to rest in time.
func (c *campaign) print(first uint64) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	line := func(of, scenario string, s *score) {
		// Flush returns the error
		_, _ = fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\n", of, scenario, s.runs, s.failed, s.items, s.violation)
	}
	_, _ = fmt.Fprintln(w, "database\tscenario\truns\tfailed\titems\tviolations")
	var sum score
	for _, s := range c.scores {
		line(s.kind, s.scenario, s)
		sum.runs, sum.failed = sum.runs+s.runs, sum.failed+s.failed
		sum.items, sum.violation = sum.items+s.items, sum.violation+s.violation
	}
	line(fmt.Sprintf("all, from seed %d", first), "", &sum)
	return w.Flush()
}
