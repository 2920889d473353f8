//go:build !unix

package program

import "os/exec"

// lead does nothing: there are no process groups.
func lead(*exec.Cmd) {}

// killGroup kills the program. What it has started goes on.
func killGroup(cmd *exec.Cmd) {
	_ = cmd.Process.Kill() // fails if it has ended
}

// collectGroup does nothing.
func collectGroup(*exec.Cmd) {}
