package plan

import "testing"

// The table has a name for each rule. A queue may wait for the rules in rank from Ineligible to QueuesPerServer, and
// value has a text for each of these.
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
