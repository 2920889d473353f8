package program

import (
	"os/exec"
	"syscall"
)

// lead makes the program the leader of a process group, and the kernel kill it when the worker has ended.
func lead(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
