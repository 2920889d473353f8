package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/cmd/rota/internal/cli"
	"github.com/dutyrota/rota/internal/records"
	"github.com/dutyrota/rota/schema"
)

func newVersionCommand() *cobra.Command {
	var o cli.Output
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Show the versions of the program and its schema",
		Example: "  rota version\n  rota version -o json | jq -r .rota",
		Args:    cli.Arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			b := readBuild()
			record := records.Object{
				records.M("rota", b.version), records.M("commit", b.commit), records.M("modified", b.modified),
				records.M("schema", schema.Latest()), records.M("edition", schema.Edition()),
				records.M("go", runtime.Version()), records.M("os", runtime.GOOS), records.M("arch", runtime.GOARCH),
			}
			return o.Write(cmd.OutOrStdout(),
				cli.Result{Records: record, Text: func(cli.Screen) string { return b.text() }})
		},
	}
	cli.AddOutputFlags(cmd, &o)
	return cmd
}

// addVersionFlag makes "rota --version" print what "rota version" prints.
func addVersionFlag(root *cobra.Command) {
	b := readBuild()
	root.Version = b.version
	root.SetVersionTemplate(b.text() + "\n")
	root.Flags().Bool("version", false, "show the versions of the program and its schema") // cobra's own would take -v
}

// build is what the Go toolchain recorded.
type build struct {
	version  string    // a tag, a pseudo-version, or (devel)
	commit   string    // "" if it was built outside of a checkout, as "go install rota@v1.2.3" does
	modified bool      // the checkout had changes
	time     time.Time // of the commit, or zero
}

func readBuild() build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return build{version: "unknown"}
	}
	return buildOf(info)
}

func buildOf(info *debug.BuildInfo) build {
	b := build{version: info.Main.Version}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.commit = s.Value
		case "vcs.modified":
			b.modified = s.Value == "true"
		case "vcs.time":
			b.time, _ = time.Parse(time.RFC3339, s.Value) // what is malformed is unknown
		}
	}
	return b
}

func (b build) text() string {
	commit := cmp.Or(b.commit, "unknown")
	if b.modified {
		commit += ", modified"
	}
	return fmt.Sprintf("rota   %s\ncommit %s\nschema %d, edition %s\ngo     %s %s/%s", b.version, commit, schema.Latest(),
		schema.Edition(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
