package plan_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/dutyrota/rota/internal/plan"
)

func TestSelector(t *testing.T) {
	server := plan.Server{Host: "web1", Labels: plan.Labels{"zone": "b", "disk": "ssd"}}
	for text, want := range map[string]bool{
		"":                   true,
		"zone=b":             true,
		"zone=a|b, disk=ssd": true,
		"host=web1":          true,
		"zone=a":             false,
		"zone=b,disk=hdd":    false,
		"rack=7":             false,
		"host=web2|web3":     false,
	} {
		s, err := plan.ParseSelector(text)
		if err != nil || s.Matches(server) != want {
			t.Errorf("%q: %v, %v; want %v", text, s.Matches(server), err, want)
		}
	}
	for _, text := range []string{"zone", "zone=", "=b", "Zone=b", "zone=a b", "zone=b,", "zone=a||b"} {
		s, err := plan.ParseSelector(text)
		if err == nil || s.Matches(server) || s.Matches(plan.Server{}) {
			t.Errorf("%q is a selector: %v", text, err)
		}
	}
}

func TestParseLabels(t *testing.T) {
	labels, err := plan.ParseLabels("zone=b, disk=ssd")
	if err != nil || !maps.Equal(labels, plan.Labels{"zone": "b", "disk": "ssd"}) || labels.String() != "disk=ssd,zone=b" {
		t.Errorf("%v, %v", labels, err)
	}
	if none, err := plan.ParseLabels(""); err != nil || len(none) > 0 {
		t.Errorf("%v, %v; want none", none, err)
	}
	many := strings.Repeat("x", 64) + "=1"
	for _, text := range []string{"zone", "zone=a,zone=b", "zone=", "host=web1", "zone=a=b", many} {
		if labels, err := plan.ParseLabels(text); err == nil {
			t.Errorf("%q: %v, want an error", text, labels)
		}
	}
}
