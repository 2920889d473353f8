package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/ops/verbs"
)

// pairs counts how often two features have been in one history: options of tasks, kinds of steps and verbs.
type pairs map[[2]string]int

// features returns what a history has, each once.
func (h *history) features() []string {
	has := map[string]bool{}
	if h.returns > 0 {
		has["returns"] = true
	}
	if h.retention > 0 {
		has["retention"] = true
	}
	if h.hints {
		has["hints"] = true
	}
	if h.others > 0 {
		has["others"] = true
	}
	if h.forgets > 0 {
		has["retention of others"] = true
	}
	for _, t := range h.tasks {
		for _, word := range t.words {
			has[optionOf(word)] = true
		}
	}
	for _, s := range h.steps {
		switch verb := s.words[0]; verb {
		case "verb":
			has[strings.ReplaceAll(s.words[1], "_", " ")] = true
		case "link":
			name, _, _ := strings.Cut(s.words[2], "=")
			has["link "+name] = true
		case "items":
			has["item "+s.words[3]] = true
		case "start":
			has[verb] = true
			if slices.Contains(s.words, applies) {
				has["start, with settings"] = true
			}
		case "clock":
			if d, err := time.ParseDuration(s.words[1]); err == nil && d.Abs() > time.Hour {
				has["clock, by days"] = true
			}
			has[verb] = true
		case "go", "back", "up", "backup":
		default:
			has[verb] = true
		}
	}
	for _, name := range common {
		delete(has, name)
	}
	var list []string
	for name := range has {
		if name != "link ok" {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// common is what each history has.
var common = []string{
	"queues", "sleep_time_nodata", "item_retry", "item_retry_max", "item_max_attempts", "queue_retry", "item " + fateFine,
	"heartbeat_interval",
}

// optionOf returns the name of an option. The values of some settings are options of their own.
func optionOf(word string) string {
	name, value, _ := strings.Cut(word, "=")
	if name == "queues" && strings.HasPrefix(value, "[") {
		return "named queues"
	}
	if word == "database="+inTwoDatabases {
		return "two databases"
	}
	if slices.Contains([]string{"mode", "processor_type", "balance", "on_dead"}, name) {
		return word
	}
	return name
}

// allFeatures returns what a history may have.
func allFeatures() []string {
	list := []string{
		"Keyed", "Paged", "Ordered", "Discarder", "Cursored", "SetSelector", "intx", "exec", "fence", "plain", "mode=RUN", "every", "after",
		"database", "two databases", "named queues",
		"returns", "retention", "hints", "judge_dead_interval", "start", "start, with settings", "kill", "leave", "stop", "link delay", "link lose", "link reply", "link abort",
		"link cut", "clock", "clock, by days", "restore", "out", "down", "edit", "request", "submit", "others", "other",
		"retention of others", "item " + fateOnce, "item " + fatePoison, "item " + fateKiller,
	}
	for _, word := range optional {
		list = append(list, optionOf(word))
	}
	for _, v := range verbs.All() {
		if unplayed[v.Name] == "" {
			list = append(list, v.Name)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// add counts the pairs of a history.
func (p pairs) add(h *history) {
	list := h.features()
	for i, a := range list {
		for _, b := range list[i+1:] {
			p[[2]string{a, b}]++
		}
	}
}

// table says how many pairs were played, and which were not.
func (p pairs) table() string {
	all := allFeatures()
	missing, n := map[string][]string{}, 0
	for i, a := range all {
		for _, b := range all[i+1:] {
			n++
			if p[[2]string{a, b}] == 0 {
				missing[a] = append(missing[a], b)
			}
		}
	}
	var text strings.Builder
	left := 0
	for _, a := range all {
		if len(missing[a]) > 0 {
			left += len(missing[a])
			fmt.Fprintf(&text, "\n  %s: %s", a, strings.Join(missing[a], ", "))
		}
	}
	played := fmt.Sprintf("%d of %d pairs of %d features played", n-left, n, len(all))
	if left == 0 || left > 500 {
		return played
	}
	return played + "; not played:" + text.String()
}
