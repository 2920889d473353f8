//go:build unix

package main

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/dutyrota/rota/internal/testdb"
)

// policy is the script that packages of Debian call before they start a service.
const policy = "/usr/sbin/policy-rc.d"

//go:embed get-mysql.sh
var getMySQL string

// install installs the missing packages of the servers, and of the languages of examples/workers, on Debian and as
// root, and unpacks MySQL into the user's cache, on Debian. Elsewhere it does nothing, and the errors of
// testdb.StartServer, testdb.Language and testdb.Python say what is missing.
func install(kinds []string, signals <-chan os.Signal) error {
	if _, err := exec.LookPath("apt-get"); err != nil {
		return nil
	}
	if err := installPackages(kinds, signals); err != nil {
		return err
	}
	if !slices.Contains(kinds, testdb.MySQL) || testdb.Installed(testdb.MySQL) || testdb.MySQLCache() == "" {
		return nil
	}
	command := exec.Command("/bin/sh", "-c", getMySQL, "get-mysql.sh", testdb.MySQLCache())
	command.Stdout, command.Stderr = os.Stderr, os.Stderr
	if err := execute(command, signals); err != nil {
		return fmt.Errorf("unpack MySQL into %s: %w", testdb.MySQLCache(), err)
	}
	return nil
}

func installPackages(kinds []string, signals <-chan os.Signal) (err error) {
	servers, err := testdb.Also()
	if err != nil {
		return err
	}
	for _, kind := range kinds {
		servers = append(servers, testdb.Needs(kind)...)
	}
	var names []string
	for _, server := range servers {
		if !testdb.Installed(server) {
			names = append(names, testdb.Packages(server)...)
		}
	}
	names = append(names, testdb.MissingLanguages()...)
	names = append(names, testdb.MissingClock(kinds)...)
	if len(names) == 0 || os.Geteuid() != 0 {
		return nil
	}
	restore, err := forbidServices(policy)
	if err != nil {
		return fmt.Errorf("forbid packages to start services: %w", err)
	}
	defer func() { err = errors.Join(err, restore()) }()
	if err := apt(signals, "update"); err != nil {
		return err
	}
	options := []string{"install", "-y", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=300"}
	return apt(signals, append(options, names...)...)
}

// forbidServices keeps newly installed services from starting, until restore is called.
func forbidServices(policy string) (restore func() error, err error) {
	aside := policy + ".rota"
	// A policy that is already aside is the original: a killed run has left it there.
	if _, err := os.Stat(aside); errors.Is(err, fs.ErrNotExist) {
		if err := os.Rename(policy, aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	restore = func() error {
		if err := os.Rename(aside, policy); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return os.Remove(policy)
	}
	return restore, os.WriteFile(policy, []byte("#!/bin/sh\nexit 101\n"), 0o755)
}

func apt(signals <-chan os.Signal, args ...string) error {
	command := exec.Command("apt-get", args...)
	command.Stdout, command.Stderr = os.Stderr, os.Stderr // stdout belongs to the command
	command.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	if err := execute(command, signals); err != nil {
		return fmt.Errorf("apt-get %s: %w; or use the servers of compose.yaml", strings.Join(args, " "), err)
	}
	return nil
}
