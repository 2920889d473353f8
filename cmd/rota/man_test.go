package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Each command has a page, which names its flags and which man accepts.
func TestManPages(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "share", "man1")
	if stdout, stderr, code := runRota(t, "", "man", dir); code != 0 || stdout+stderr != "" {
		t.Fatalf("exit code %d: %s%s", code, stdout, stderr)
	}
	pages := 0
	var wantPage func(cmd *cobra.Command)
	wantPage = func(cmd *cobra.Command) {
		pages++
		path := filepath.Join(dir, strings.ReplaceAll(cmd.CommandPath(), " ", "-")+".1")
		page, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(string(page), `\-`, "-")
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && !strings.Contains(text, "--"+f.Name) {
				t.Errorf("%s: no --%s", path, f.Name)
			}
		})
		for _, c := range cmd.Commands() {
			if !c.Hidden {
				wantPage(c)
			}
		}
	}
	wantPage(newRootCommand())
	written, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(written) != pages {
		t.Errorf("%d pages, want %d: %v", len(written), pages, err)
	}
	if groff, err := exec.LookPath("groff"); err == nil { // what man runs, once for all pages
		args := append([]string{"-man", "-wall", "-Kutf8", "-Tutf8", "-z"}, written...)
		if out, err := exec.CommandContext(t.Context(), groff, args...).CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("groff %s: %v: %s", dir, err, out)
		}
	}
}

// A page has the lines of a table and of an example as the help has them, and the date of the commit.
func TestManPageOfACommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := build{version: "v0.1.0", time: time.Date(2025, 3, 31, 23, 0, 0, 0, time.UTC)}
	if err := writeManPages(dir, b); err != nil {
		t.Fatal(err)
	}
	for name, wants := range map[string][]string{
		"rota-queue-list.1":    {`"Mar 2025" "rota v0.1.0" "Rota"`, "\n  RESERVED    it waits for its worker, which has left and returns soon\n"},
		"rota-trigger-apply.1": {"\n  rota trigger apply poll --task import --every 10m --overlap WAIT\n"},
	} {
		page, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range wants {
			if !strings.Contains(strings.ReplaceAll(string(page), `\-`, "-"), want) {
				t.Errorf("%s\nwant in it\n%s", page, want)
			}
		}
	}
}
