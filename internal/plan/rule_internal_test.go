package plan

import "testing"

// The table has each rule, and value has each for which a queue may wait: those in rank from Ineligible to
// QueuesPerServer, of which waitsFor takes the last.
func TestEachRuleHasItsTexts(t *testing.T) {
	for rule := Removed; int(rule) < len(ruleTexts); rule++ {
		if texts := ruleTexts[rule]; texts.name == "" || texts.move == "" {
			t.Errorf("rule %d: the table has %+v", rule, texts)
		}
		waits := Ineligible <= rule && rule <= QueuesPerServer
		if text := (Limits{Servers: 1}).value(rule, Selector{}); waits != (text != "") {
			t.Errorf("rule %s: a queue that may wait for it (%t) is told %q", rule, waits, text)
		}
	}
}
