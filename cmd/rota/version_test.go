package main

import (
	"encoding/json"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/dutyrota/rota/schema"
)

func TestVersionFlagPrintsWhatTheCommandPrints(t *testing.T) {
	t.Parallel()
	text, _, _ := runRota(t, t.TempDir(), "version")
	flag, stderr, code := runRota(t, t.TempDir(), "--version")
	if code != 0 || stderr != "" || flag != text || text == "" {
		t.Errorf("--version: exit code %d, stderr %q, stdout %q, want %q", code, stderr, flag, text)
	}
	doc, _, _ := runRota(t, t.TempDir(), "version", "-o", "json")
	var record map[string]any
	if err := json.Unmarshal([]byte(doc), &record); err != nil || record["schema"] != float64(schema.Latest()) ||
		record["edition"] != schema.Edition() || record["rota"] == "" {
		t.Errorf("%v: %s", err, doc)
	}
}

// The version names the commit that the program was built of, and whether something was changed on the way.
func TestVersionNamesTheCommit(t *testing.T) {
	t.Parallel()
	const commit = "6328ab40a410807793619a1d476ba178efd15c71"
	for want, settings := range map[string][]debug.BuildSetting{
		"commit " + commit + "\n":           {{Key: "vcs.revision", Value: commit}, {Key: "vcs.modified", Value: "false"}},
		"commit " + commit + ", modified\n": {{Key: "vcs.revision", Value: commit}, {Key: "vcs.modified", Value: "true"}},
		"commit unknown\n":                  nil,
	} {
		b := buildOf(&debug.BuildInfo{Main: debug.Module{Version: "v0.1.0"}, Settings: settings})
		if text := b.text(); !strings.HasPrefix(text, "rota   v0.1.0\n"+want) {
			t.Errorf("%q, want the line %q", text, want)
		}
	}
}
