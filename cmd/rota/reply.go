package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/internal/escape"
	"github.com/dutyrota/rota/internal/records"
)

// reply writes what a command has done: as a line, escaped and wrapped, or as a
// record for JSON and CSV.
func (o output) reply(cmd *cobra.Command, line string, record records.Object) error {
	return o.write(cmd.OutOrStdout(), result{records: record, text: func(sc screen) string { return sc.wrap(line) }})
}

// done replies what was done to an object, such as "settle$BASE": "paused".
func (o output) done(cmd *cobra.Command, name, what string, more ...records.Member) error {
	record := append(records.Object{records.M("object", name), records.M("result", what)}, more...)
	return o.reply(cmd, name+": "+what, record)
}

// sayError writes a line to stderr, escaped.
func sayError(cmd *cobra.Command, line string) {
	fmt.Fprintln(cmd.ErrOrStderr(), escape.Text(line)) //nolint:errcheck // stderr is the last channel
}
