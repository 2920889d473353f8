package demo

import "syscall"

// dieWithParent makes the kernel kill the worker when the demo has ended, for whatever reason. The process group of its
// own keeps the terminal's Ctrl-C from the worker: the demo ends the workers.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
