package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/internal/records"
	"github.com/dutyrota/rota/schema"
)

func newVersionCommand() *cobra.Command {
	var o output
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Show the versions of the program and its schema",
		Example: "  rota version\n  rota version -o json | jq -r .rota",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			record := records.Object{
				records.M("rota", version()), records.M("schema", schema.Latest()), records.M("go", runtime.Version()),
				records.M("os", runtime.GOOS), records.M("arch", runtime.GOARCH),
			}
			return o.write(cmd.OutOrStdout(), result{records: record, text: func(screen) string { return versionText() }})
		},
	}
	addOutputFlags(cmd, &o)
	return cmd
}

func versionText() string {
	return fmt.Sprintf("rota   %s\nschema %d\ngo     %s %s/%s", version(), schema.Latest(), runtime.Version(),
		runtime.GOOS, runtime.GOARCH)
}

// addVersionFlag makes "rota --version" print what "rota version" prints.
func addVersionFlag(root *cobra.Command) {
	root.Version = version()
	root.SetVersionTemplate(versionText() + "\n")
	root.Flags().Bool("version", false, "show the versions of the program and its schema") // cobra's own would take -v
}

// version returns what the Go toolchain recorded: a tag, a pseudo-version, or
// (devel).
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return info.Main.Version
}
