// Package environ keeps the worker's environment and arguments from the programs that it starts.
//
// A program gets the variables of an allow list (Passed, and those that its dealer names). That does not suffice on
// Linux, where the environment with which a process was started stays in /proc/PID/environ for processes of the same
// user, and its arguments in /proc/PID/cmdline for all: os.Unsetenv does not change either. So Hide lets the process
// execute itself once more, with the variables of the allow list and of Go's runtime, which reads them before it runs
// any code, and with arguments without secrets. It hands the rest over in a file in memory, which Restore reads and
// closes before anything else is done. The process keeps its id, and os.Getenv works as before, so that nothing has to
// know which variables are secret. To overwrite the bytes in place was rejected, because Go's strings refer to them.
// To ask for files in the place of variables was rejected, because drivers and clients have variables of their own,
// such as PGPASSWORD.
//
// Hide also makes the process undumpable, so that others of its user cannot read its memory or its open files. A
// program with CAP_SYS_PTRACE, which root has outside of containers, can read the memory of every process all the same.
package environ

import (
	"runtime"
	"slices"
	"strings"
)

// passed are the variables that every program gets: what the system and its libraries need, and no configuration of a
// service, which may hold a password.
var passed = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR",
}

// passedOnWindows are those that programs on Windows do not start without.
var passedOnWindows = []string{
	"SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "TEMP", "TMP", "USERPROFILE",
}

// Passed reports whether every program gets the variable.
func Passed(name string) bool {
	if runtime.GOOS == "windows" {
		name = strings.ToUpper(name)
		if slices.Contains(passedOnWindows, name) {
			return true
		}
	}
	return slices.Contains(passed, name) || strings.HasPrefix(name, "LC_")
}

// Select returns the entries of an environment whose names a program gets: those that are passed to all, and named.
func Select(environment, named []string) (selected []string) {
	for _, entry := range environment {
		if name, _, _ := strings.Cut(entry, "="); Passed(name) || slices.Contains(named, name) {
			selected = append(selected, entry)
		}
	}
	return selected
}
