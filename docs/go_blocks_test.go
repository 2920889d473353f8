package docs_test

import (
	"io/fs"
	"os"
	"strings"
	"testing"
)

// A Go block is a file that a page's own commands build, or consists of parts of files that compile. A line with only
// "..." separates the parts.
func TestGoBlocks(t *testing.T) {
	t.Parallel()
	code := goFiles(t)
	for _, page := range pages(t) {
		for _, b := range readBlocks(t, page) {
			if b.language != "go" || b.file() != "" || b.notRun != "" {
				continue
			}
			for part := range strings.SplitSeq("\n"+withoutIndent(b.text), "\n...\n") {
				if part = strings.TrimSpace(part); !strings.Contains(code, part) {
					t.Errorf("%s:%d: no Go file has these lines:\n%s", page, b.line, part)
				}
			}
		}
	}
}

// goFiles returns all lines of the repository's Go files, without indentation.
func goFiles(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	root := os.DirFS("..")
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go"):
			return nil
		}
		text, err := fs.ReadFile(root, path)
		all.WriteString(withoutIndent(string(text)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

func withoutIndent(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	return strings.Join(lines, "\n")
}
