//go:build unix

package program

import (
	"os/exec"
	"syscall"
)

// killGroup kills the program and what it has started.
func killGroup(cmd *exec.Cmd) {
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // fails if all of them have ended
}
