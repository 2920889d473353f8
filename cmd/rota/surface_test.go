package main

import (
	"encoding/json"
	"flag"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dutyrota/rota/internal/testdb"
)

// surface lists what scripts call and read: commands, flags, and the names in their JSON. docs/compatibility.md
// promises that they stay. A change of the file is a public change.
const surface = "testdata/surface.txt"

var update = flag.Bool("update", false, "add the new lines to "+surface)

// Lines of the file that are no longer true break scripts, so that -update does not remove them.
func TestSurface(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(surface)
	if err != nil {
		t.Fatal(err)
	}
	promised := strings.Split(strings.TrimSpace(string(text)), "\n")
	present := append(commandLines(newRootCommand()), jsonLines(t)...)
	for _, line := range promised {
		if !slices.Contains(present, line) {
			t.Errorf("%s promises what is no longer there: %s", surface, line)
		}
	}
	present = slices.DeleteFunc(present, func(line string) bool { return slices.Contains(promised, line) })
	if len(present) > 0 && !*update {
		t.Errorf("%s lacks lines, which -update adds:\n%s", surface, strings.Join(present, "\n"))
	}
	if *update {
		all := slices.Sorted(slices.Values(append(promised, present...)))
		if err := os.WriteFile(surface, []byte(strings.Join(slices.Compact(all), "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// commandLines returns a line for each command and each of its flags.
func commandLines(cmd *cobra.Command) (lines []string) {
	if cmd.Hidden || strings.HasPrefix(cmd.CommandPath(), "rota completion") {
		return nil
	}
	lines = append(lines, cmd.CommandPath())
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		lines = append(lines, cmd.CommandPath()+" --"+f.Name+" "+f.Value.Type())
	})
	for _, sub := range cmd.Commands() {
		lines = append(lines, commandLines(sub)...)
	}
	return lines
}

// jsonLines returns a line for each name in the JSON of the commands.
func jsonLines(t *testing.T) (lines []string) {
	t.Helper()
	url := testdb.URL(t, testdb.SQLite)
	s := newHostileRoster(t, url)
	s.file("  settle: {queues: 4}\n  push: {queues: 1}\n")
	for _, command := range hostileCommands {
		if !hasOutputFlag(command) {
			continue
		}
		args := append(sweepArgs(command, url), "-o=json")
		if command == "task apply" {
			args = append(args, "-f", s.dir+"/rota.yaml")
		}
		stdout, _, _ := runRota(t, s.dir, args...)
		var value any
		if json.Unmarshal([]byte(stdout), &value) != nil {
			continue // a refusal
		}
		cmd, _, err := newRootCommand().Find(strings.Fields(command))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names("", value) {
			lines = append(lines, cmd.CommandPath()+" -o json: "+name)
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// own matches the names that the program gives. Other names are data, such as labels.
var own = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// names returns the paths to all values in a value of JSON.
func names(path string, value any) (list []string) {
	switch value := value.(type) {
	case []any:
		for _, element := range value {
			list = append(list, names(path+"[]", element)...)
		}
	case map[string]any:
		for name, member := range value {
			if own.MatchString(name) {
				at := strings.TrimPrefix(path+"."+name, ".")
				list = append(append(list, at), names(at, member)...)
			}
		}
	}
	return list
}
