package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/schema"
)

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show the versions of the program and its schema",
		Args:  noArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			cmd.Printf("rota   %s\nschema %d\ngo     %s %s/%s\n",
				version(), schema.Latest(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
		},
	}
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
