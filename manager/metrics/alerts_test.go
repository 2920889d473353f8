package metrics_test

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/dutyrota/rota/condition"
)

// alertRules is the format of a file of rules, as far as alerts.yaml uses it.
type alertRules struct {
	Groups []struct {
		Name  string
		Rules []struct {
			Alert, Expr, For    string
			Labels, Annotations map[string]string
		}
	}
}

// The alert rules ask only for metrics that exist. Conditions have a rule for each status.
func TestAlertRulesAskForExistingMetrics(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file alertRules
	decoder := yaml.NewDecoder(strings.NewReader(string(text)))
	decoder.KnownFields(true)
	if err := decoder.Decode(&file); err != nil {
		t.Fatal(err)
	}
	known, statuses := knownMetrics(t), []string{condition.Problem, condition.Note}
	var names []string
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			names = append(names, rule.Alert)
			asked := metricNames(rule.Expr)
			for _, name := range asked {
				if !known[name] {
					t.Errorf("%s asks for %s, which does not exist", rule.Alert, name)
				}
			}
			if bare := bareCommand.FindString(rule.Annotations["description"]); bare != "" && strings.Contains(rule.Expr, "own_sign") {
				t.Errorf("%s: %q works in BASE alone: %s", rule.Alert, bare, rule.Annotations["description"])
			}
			if len(asked) == 0 || rule.Labels["severity"] == "" || rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" {
				t.Errorf("%s is %+v, want a metric, a severity, a summary and a description", rule.Alert, rule)
			}
			if _, err := time.ParseDuration(rule.For); rule.For != "" && err != nil {
				t.Errorf("%s: for: %v", rule.Alert, err)
			}
			statuses = slices.DeleteFunc(statuses, func(status string) bool { return strings.Contains(rule.Expr, `rota_conditions{status="`+status+`"`) })
		}
	}
	if len(statuses) > 0 {
		t.Errorf("no rule for conditions with the status %v", statuses)
	}
	if slices.Sort(names); len(names) < 10 || len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("alerts %v, want at least 10, each once", names)
	}
}

// bareCommand finds a command line for a task type that does not name its environment, or does not quote it for a shell.
var bareCommand = regexp.MustCompile(`\brota (doctor|event|item|queue|run|task|trigger|worker list)\b|[a-z] {{ \$labels\.task_type`)

// Prometheus's own tool accepts the rules, where it is installed.
func TestPromtoolAcceptsTheRules(t *testing.T) {
	t.Parallel()
	tool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed: TestAlertRulesAskForExistingMetrics checks the rules without it")
	}
	if out, err := exec.CommandContext(t.Context(), tool, "check", "rules", "alerts.yaml").CombinedOutput(); err != nil {
		t.Errorf("promtool check rules alerts.yaml: %v\n%s", err, out)
	}
}

// metricNames returns the metrics that an expression asks for, without the suffixes of histograms.
func metricNames(expr string) (names []string) {
	for _, name := range regexp.MustCompile(`rota_[a-z_]+`).FindAllString(expr, -1) {
		names = append(names, strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_count"))
	}
	return names
}
