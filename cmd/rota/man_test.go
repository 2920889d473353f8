package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// The pages name every command and every flag of it, in macros that exist.
func TestManPages(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "share", "man1")
	if stdout, stderr, code := runRota(t, "", "man", dir); code != 0 || stdout+stderr != "" {
		t.Fatalf("exit code %d: %s%s", code, stdout, stderr)
	}
	for _, page := range append(pages(newRootCommand()), newRootCommand()) {
		path := filepath.Join(dir, pageName(page)+".1")
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text := string(raw)
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, ".") && !regexp.MustCompile(`^\.(TH|SH|SS|PP|TP|B|BR|br|EX|EE)( ".*")*\n$`).MatchString(line) {
				t.Errorf("%s: unknown macro %q", path, line)
			}
		}
		wantInPage(t, page, text)
		if man, err := exec.LookPath("man"); err == nil {
			cmd := exec.CommandContext(t.Context(), man, "--warnings", "-l", path)
			var stderr strings.Builder
			cmd.Stderr = &stderr
			if err := cmd.Run(); err != nil || stderr.Len() > 0 {
				t.Errorf("man %s: %v: %s", path, err, stderr.String())
			}
		}
	}
}

func wantInPage(t *testing.T, cmd *cobra.Command, text string) {
	t.Helper()
	if cmd.HasParent() && cmd.Example != "" && !strings.Contains(text, inRoff.Replace(`.B "`+cmd.UseLine()+`"`)) {
		t.Errorf("%s is not in the page", cmd.CommandPath())
	}
	for _, f := range flagsOf(cmd) {
		if cmd.HasParent() && !strings.Contains(text, inRoff.Replace("--"+f.Name)) {
			t.Errorf("%s: the page has no --%s", cmd.CommandPath(), f.Name)
		}
	}
	for _, c := range cmd.Commands() {
		if cmd.HasParent() && !c.Hidden {
			wantInPage(t, c, text)
		}
	}
}

// The text of a page stays what it is in the help, and the page has the date of the commit.
func TestManPageIsEscaped(t *testing.T) {
	t.Parallel()
	root, cmd := &cobra.Command{Use: "rota"}, &cobra.Command{Use: "x", Example: "  rota x \\\n      --y 'z'"}
	cmd.Long = ".hidden is a file\n'quoted' a~b\n\nstates:\n  OK  fine"
	root.AddCommand(cmd)
	got := manPage(cmd, build{version: "v0.1.0", time: time.Date(2026, 11, 27, 23, 0, 0, 0, time.UTC)})
	for _, want := range []string{
		`.TH "ROTA\-X" "1" "2026\-11\-27" "rota v0.1.0" "Rota"` + "\n",
		".PP\n\\&.hidden is a file\n\\(aqquoted\\(aq a\\(tib\n.PP\n.EX\nstates:\n  OK  fine\n.EE\n",
		".EX\n  rota x \\e\n      \\-\\-y \\(aqz\\(aq\n.EE\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s\nwant in it\n%s", got, want)
		}
	}
}
