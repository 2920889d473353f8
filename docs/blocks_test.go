package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// block is a fenced block of a page. The test of its language says what becomes of it:
//
//	sh    runs, in the order of the page (commands_test.go)
//	go    is built by the page itself, or consists of parts of files that compile (go_blocks_test.go)
//	yaml  is a rota.yaml or part of one, and a worker accepts it (yaml_blocks_test.go)
//	sql   runs on each database, if it reads or changes the roster (ops/page_sql_test.go)
//	json  is a request to a program or its reply, or both (workers_test.go)
//	python  is a part of a program under examples/workers (workers_test.go)
//	text  is what the sh block above it prints, or a drawing
//
// A block whose first line is a comment with nothing but a file name is that file. The line
// <!-- not run: REASON --> above a block excuses it.
type block struct {
	page     string
	line     int // of the opening fence
	language string
	text     string
	notRun   string // the reason, or ""
}

// languages are those that a block may have.
var languages = []string{"sh", "go", "yaml", "sql", "text", "ini", "proto", "json", "python"}

var (
	fence       = regexp.MustCompile("^```(\\w*)$")
	notRun      = regexp.MustCompile(`^<!-- not run: (.+) -->$`)
	fileComment = regexp.MustCompile(`^(?://|#|--) ([\w.-]+\.\w+)$`)
)

// pages are README.md and the pages of this folder.
func pages(t *testing.T) []string {
	t.Helper()
	list, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	return append(list, "../README.md", "../SECURITY.md")
}

func readBlocks(t *testing.T, page string) (list []block) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var open *block
	reason, n := "", 0
	for line := range strings.Lines(string(text)) {
		n++
		trimmed := strings.TrimSuffix(line, "\n")
		m := fence.FindStringSubmatch(trimmed)
		switch {
		case open != nil && trimmed == "```":
			list, open = append(list, *open), nil
		case open != nil:
			open.text += line
		case m != nil:
			open, reason = &block{page: page, line: n, language: m[1], notRun: reason}, ""
		default:
			reason = ""
			if m := notRun.FindStringSubmatch(trimmed); m != nil {
				reason = m[1]
			}
		}
	}
	if open != nil {
		t.Errorf("%s:%d: the block does not end", page, open.line)
	}
	return list
}

// file returns the name of the file that the block is, or "".
func (b block) file() string {
	first, _, _ := strings.Cut(b.text, "\n")
	if m := fileComment.FindStringSubmatch(first); m != nil {
		return m[1]
	}
	return ""
}

func TestEveryBlockHasALanguage(t *testing.T) {
	for _, page := range pages(t) {
		for _, b := range readBlocks(t, page) {
			if !slices.Contains(languages, b.language) {
				t.Errorf("%s:%d: language %q, want one of %q", page, b.line, b.language, languages)
			}
		}
	}
}

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// Every link to a file of the repository leads to one, and to a heading if it names one.
func TestLinks(t *testing.T) {
	for _, page := range append(pages(t), "../CONTRIBUTING.md", "../CHANGELOG.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			path, anchor, _ := strings.Cut(m[1], "#")
			target := page
			if path != "" {
				target = filepath.Join(filepath.Dir(page), path)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s: %v", page, m[1], err)
			} else if anchor != "" && !slices.Contains(anchors(t, target), anchor) {
				t.Errorf("%s links to %s, which has no such heading", page, m[1])
			}
		}
	}
}

var notInAnchor = regexp.MustCompile(`[^a-z0-9 _-]`)

// anchors returns the anchors that GitHub makes of the headings of a page.
func anchors(t *testing.T, page string) (list []string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if heading := strings.TrimLeft(line, "#"); heading != line && strings.HasPrefix(heading, " ") {
			name := notInAnchor.ReplaceAllString(strings.ToLower(strings.TrimSpace(heading)), "")
			list = append(list, strings.ReplaceAll(name, " ", "-"))
		}
	}
	return list
}
