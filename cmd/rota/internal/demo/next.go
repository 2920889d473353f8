package demo

import (
	"cmp"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
)

// next returns three commands that work when a user pastes them, in this order. keep is the directory that the user has
// kept, or empty.
func next(program, keep string) string {
	config := " -c " + quote(filepath.Join(cmp.Or(keep, "demo-files"), configName)) + "\n"
	first := "- Read what has happened:\n    " + program + " event list" + config
	if keep == "" {
		first = "- Run the demo again and keep its database and rota.yaml:\n    " + program + " demo --keep demo-files\n"
	}
	return "\nWhat to do next:\n" + first +
		"- See the queues. EPOCH rises with each change of the owner. The database\n" +
		"  rejects what a worker writes under an old epoch:\n    " + program + " queue list" + config +
		"- Start a worker (Ctrl-C ends it). rota.yaml has its SQL: put your own there.\n    " + program + " worker" + config
}

// invocation returns how the user has started the program. `go run` starts a file in the build cache.
func invocation() string {
	if !strings.Contains(os.Args[0], "go-build") {
		return quote(os.Args[0])
	}
	command := "go run github.com/dutyrota/rota/cmd/rota"
	if info, ok := debug.ReadBuildInfo(); ok && strings.HasPrefix(info.Main.Version, "v") {
		command += "@" + info.Main.Version // outside of a checkout
	}
	return command
}

// quote returns the word as a shell reads it.
func quote(word string) string {
	if !strings.ContainsAny(word, " \t\"'$&()*;<>?[]`{|}~#!") {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
