//go:build unix && !linux

package program

import (
	"os/exec"
	"syscall"
)

// lead makes the program the leader of a process group.
func lead(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
