//go:build !unix

package testdb

import (
	"errors"
	"os/exec"
)

// isolate refuses: the keeper of a throw-away server is a shell script. Tests on these systems use SQLite, or servers
// whose URLs are in the environment.
func isolate(*exec.Cmd, plan, string, string) error {
	return errors.New("throw-away servers need a Unix system")
}
