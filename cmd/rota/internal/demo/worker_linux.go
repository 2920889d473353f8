package demo

import "syscall"

// dieWithParent makes the kernel kill the worker when the demo is gone, however that ends, and keeps the Ctrl-C of
// the terminal from it: how the workers end is the demo's to say.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
