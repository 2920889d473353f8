package program

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"
)

// The conformance check names what a program that selects does wrong.
func TestConformAnswers(t *testing.T) {
	t.Parallel()
	log := logrus.New()
	log.SetOutput(io.Discard)
	for fault, want := range map[string][]string{
		"":            nil,
		"shares":      {`select: two queues share no item and no order key: both queues have the item "0"`},
		"one order":   {`select: two queues share no item and no order key: both queues have items of the order key "one"`},
		"greedy":      {"select: a limit of one item: the reply has 10 items, which is more than the limit (1)"},
		"drops":       {`select: held order keys: the order key "0 of 0" is held, and the item "10" of another is left out`},
		"counts none": {"backlog: unknown op"},
		"blind":       {"peek: the queues with items: queue 1 has items, and the reply does not name it"},
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			var findings []Finding
			o := conformOptions()
			o.Answers = []string{OpSelect, OpDiscard, OpBacklog, OpPeek}
			args := append([]string{os.Args[0], beProgram}, strings.Fields(fault)...)
			if err := ConformCommand(t.Context(), args, o, log, func(f Finding) { findings = append(findings, f) }); err != nil {
				t.Fatal(err)
			}
			wantFindings(t, fault, findings, want)
			if len(findings) != 16 {
				t.Errorf("%d checks, want 16", len(findings))
			}
		})
	}
}
