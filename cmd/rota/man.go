package main

import (
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/dutyrota/rota/cmd/rota/internal/cli"
)

// newManCommand makes a command for packagers.
func newManCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "man DIR",
		Short:   "Write the manual pages into a directory, which it creates",
		Example: "  rota man /usr/local/share/man/man1",
		Hidden:  true, // "rota --help" is for users
		Args:    cli.Arguments("DIR"),
		RunE:    func(_ *cobra.Command, args []string) error { return writeManPages(args[0], readBuild()) },
	}
}

// writeManPages writes a page for each command. They have the date of the commit, so that each build makes the same
// pages.
func writeManPages(dir string, b build) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // all may read it
		return err
	}
	header := doc.GenManHeader{Section: "1", Source: "rota " + b.version, Manual: "Rota"}
	if !b.time.IsZero() {
		header.Date = &b.time
	}
	root := newRootCommand() // without the commands that cobra adds to one that runs
	root.DisableAutoGenTag = true
	return doc.GenManTree(root, &header, dir)
}
