package docs_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const licences = "licences.md"

// module is a module that the program links, and where its source is.
type module struct{ path, dir string }

// linkedModules returns the modules that `rota` links on any platform.
func linkedModules(t *testing.T) []module {
	t.Helper()
	found := map[string]module{}
	for _, platform := range []string{"linux", "darwin", "windows"} {
		cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f",
			"{{with .Module}}{{if not .Main}}{{.Path}} {{.Dir}}{{end}}{{end}}", "../cmd/rota")
		cmd.Env = append(os.Environ(), "GOOS="+platform, "CGO_ENABLED=0")
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(out)) {
			if path, dir, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
				found[path] = module{path, dir}
			}
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b module) int { return strings.Compare(a.path, b.path) })
}

// kinds tell licences by a phrase that only their text has. The first match counts.
var kinds = []struct{ name, phrase string }{
	{"Apache-2.0", "Apache License"},
	{"MPL-2.0", "Mozilla Public License Version 2.0"},
	{"MPL-2.0", "Mozilla Public License, version 2.0"},
	{"GPL", "GNU"},
	{"ISC", "Permission to use, copy, modify, and/or distribute"},
	{"MIT", "Permission is hereby granted, free of charge"},
	{"BSD-3-Clause", "may be used to endorse or promote products"},
	{"BSD-2-Clause", "Redistributions in binary form must reproduce"},
	{"public domain", "public domain"},
}

var (
	licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice)[^/]*$`)
	blanks      = regexp.MustCompile(`\s+`)
)

// licenceOf returns the kind and the names of the files of a module's licence.
func licenceOf(t *testing.T, m module) (kind string, files []string) {
	t.Helper()
	entries, err := os.ReadDir(m.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !licenceFile.MatchString(e.Name()) || strings.HasSuffix(e.Name(), ".go") {
			continue
		}
		files = append(files, e.Name())
		if kind == "" {
			kind = kindOf(t, filepath.Join(m.dir, e.Name()))
		}
	}
	return kind, files
}

func kindOf(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range kinds {
		if strings.Contains(blanks.ReplaceAllString(string(text), " "), k.phrase) {
			return k.name
		}
	}
	return ""
}

// The page names the licence of each module that the program links. go test ./docs -update writes it.
func TestLicences(t *testing.T) {
	t.Parallel()
	var table strings.Builder
	table.WriteString("| module | licence | files |\n|---|---|---|\n")
	for _, m := range linkedModules(t) {
		kind, files := licenceOf(t, m)
		if kind == "" {
			t.Errorf("%s: no licence was recognized in %q", m.path, files)
		}
		if kind == "GPL" {
			t.Errorf("%s: the program cannot be passed on under Apache-2.0 with it", m.path)
		}
		fmt.Fprintf(&table, "| %s | %s | %s |\n", m.path, kind, strings.Join(files, ", "))
	}
	page, err := os.ReadFile(licences)
	if err != nil {
		t.Fatal(err)
	}
	head, old, _ := strings.Cut(string(page), "| module |")
	if want := table.String(); "| module |"+old != want {
		if !*update {
			t.Fatalf("%s is out of date: go test ./docs -update writes it. Want\n%s", licences, want)
		}
		if err := os.WriteFile(licences, []byte(head+want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
