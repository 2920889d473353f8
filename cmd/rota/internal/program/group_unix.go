//go:build unix

package program

import (
	"errors"
	"os/exec"
	"syscall"
)

// killGroup kills the program and what it has started.
func killGroup(cmd *exec.Cmd) {
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // fails if all of them have ended
}

// collectGroup takes note of the ends of what the program has started, if these processes are children of this one by
// now: it is the first process of a container. Nobody else does so there, and the dead would fill the table of
// processes. Elsewhere it returns at once.
func collectGroup(cmd *exec.Cmd) {
	for {
		_, err := syscall.Wait4(-cmd.Process.Pid, nil, 0, nil)
		if err != nil && !errors.Is(err, syscall.EINTR) {
			return
		}
	}
}
