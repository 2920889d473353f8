//go:build !linux

package demo

import "syscall"

// dieWithParent does nothing: these kernels have no such signal. A demo that is killed with SIGKILL leaves its workers
// behind. A Ctrl-C reaches the workers too, so that they leave a little earlier.
func dieWithParent() *syscall.SysProcAttr { return nil }
