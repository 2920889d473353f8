package docs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The files of the core are there, and the core is about as large as code.md says.
func TestCoreIsAsLargeAsItSays(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("code.md")
	if err != nil {
		t.Fatal(err)
	}
	_, core, _ := strings.Cut(string(text), "## The core")
	core, _, _ = strings.Cut(core, "\n## ")
	lines := 0
	for _, row := range regexp.MustCompile(`(?m)^\| ([\w/]+): [^|]* \| (.*) \|$`).FindAllStringSubmatch(core, -1) {
		for name := range strings.SplitSeq(row[2], ", ") {
			source, err := os.ReadFile("../" + row[1] + "/" + name + ".go")
			if err != nil {
				t.Error(err)
			}
			lines += strings.Count(string(source), "\n")
		}
	}
	var said int
	if _, err := fmt.Sscanf(core[strings.Index(core, "about "):], "about %d,000 lines", &said); err != nil {
		t.Fatal(err)
	}
	if got := (lines + 500) / 1_000; got != said {
		t.Errorf("the core has %d lines, and code.md says %d,000", lines, said)
	}
}

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
