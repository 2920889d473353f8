package docs_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The words that people need before their first useful worker, at most 15. The first sections have each of them.
var firstWords = []string{
	"worker", "dealer", "task type", "queue", "item", "batch", "Select", "Selection", "Execute", "Settings", "execute_number",
	"own", "center", "InTx", "manager",
}

// laterWords are terms of the glossary that a first worker does without.
var laterWords = []string{
	"own_sign", "epoch", "lease", "lane", "sweep", "SLEEP", "NOTSLEEP", "fence", "heartbeat", "session", "server", "requester",
	"standby", "witness", "watch", "expire", "audit", "barrier", "drain", "hand over", "retake", "cursor", "order key",
	"dead item", "peek", "hint", "executor", "permit window", "capability", "mode RUN", "run", "trigger", "slot", "misfire",
	"backfill", "rerun", "roster", "lock row", "rebalance", "data database",
}

// The first section of docs/worker.md and of the documentation of package processor has a whole worker and the words
// that it needs, and leaves the others to what follows.
func TestFirstSectionsAreForNewcomers(t *testing.T) {
	t.Parallel()
	if len(firstWords) > 15 {
		t.Errorf("people need %d words before their first worker, want at most 15", len(firstWords))
	}
	program := read(t, "../examples/worker/main.go")
	_, program, _ = strings.Cut(program, "type settle")
	glossary := read(t, "glossary.md")
	page, _, _ := strings.Cut(read(t, "worker.md"), "\n## ")
	doc, _, _ := strings.Cut(read(t, "../processor/doc.go"), "\n// # ")
	doc = regexp.MustCompile(`(?m)^//[ \t]?`).ReplaceAllString(doc, "")
	for name, section := range map[string]string{"docs/worker.md": page, "processor/doc.go": doc} {
		if !strings.Contains(withoutIndent(section), withoutIndent("type settle"+strings.TrimRight(program, "\n"))) {
			t.Errorf("%s does not begin with the program of examples/worker", name)
		}
		for _, word := range firstWords {
			if !regexp.MustCompile(`\b` + word).MatchString(section) {
				t.Errorf("the first section of %s lacks %s: is it a word that people need?", name, word)
			}
		}
		for _, word := range laterWords {
			if found := regexp.MustCompile(`(?i)\b` + word + `(s|d|ed|ing)?\b`).FindString(withoutCalls.ReplaceAllString(section, "")); found != "" {
				t.Errorf("the first section of %s has %s, which a first worker does without", name, found)
			}
		}
	}
	for _, word := range laterWords {
		if !strings.Contains(glossary, word) {
			t.Errorf("the glossary has no %s", word)
		}
	}
}

// withoutCalls matches names of code such as m.Run and postgres.Mine.
var withoutCalls = regexp.MustCompile(`\b\w+\.\w+`)

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
