package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// wayStep is a row of a way in code.md: a file or a folder, and what happens there.
var wayStep = regexp.MustCompile(`(?m)^\| ([\w/]+(?:\.go)?) \| (.*) \|$`)

// What a step of a way through the code names is declared in its file.
func TestWaysNameWhatTheyPass(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("code.md")
	if err != nil {
		t.Fatal(err)
	}
	_, ways, _ := strings.Cut(string(text), "## Four ways through the code")
	ways, _, _ = strings.Cut(ways, "\n## ")
	steps := wayStep.FindAllStringSubmatch(ways, -1)
	if len(steps) < 20 {
		t.Fatalf("%d steps were found", len(steps))
	}
	for _, step := range steps {
		files := []string{"../" + step[1]}
		if !strings.HasSuffix(step[1], ".go") {
			if files, err = filepath.Glob("../" + step[1] + "/*.go"); err != nil {
				t.Fatal(err)
			}
		}
		source := ""
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			source += string(text)
		}
		for _, span := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(step[2], -1) {
			if !regexp.MustCompile(`\b` + span[1] + `\b`).MatchString(source) {
				t.Errorf("%s has no %s", step[1], span[1])
			}
		}
	}
}
