package testdb

import (
	"go/build"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// SourceNames returns what the groups of a pattern match in a file of an imported package, such as the parameters of a
// driver. The list is sorted and has each name once.
func SourceNames(t testing.TB, pkg, file, pattern string) []string {
	t.Helper()
	p, err := build.Import(pkg, ".", build.FindOnly)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(p.Dir, file))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1) {
		for _, name := range m[1:] {
			if name != "" {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
