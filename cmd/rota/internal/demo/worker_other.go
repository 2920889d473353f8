//go:build !linux

package demo

import "syscall"

// dieWithParent does nothing where the kernel offers nothing: there a demo that is killed with SIGKILL leaves its
// workers behind, and a Ctrl-C reaches them too, which only makes them leave a little earlier.
func dieWithParent() *syscall.SysProcAttr { return nil }
