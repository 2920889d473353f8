package config

import (
	"os"
	"slices"

	"github.com/spf13/pflag"
)

// databaseKeys name the roster in two ways. The first place that has one of them decides.
var databaseKeys = []string{"database", "database_file"}

// beatsEnvironment reports whether the file's value of a key wins over the environment: the user has named the file
// with --config, and it has the key. A user who names a file wants its roster, and does not expect a variable of the
// shell to decide.
func (s *source) beatsEnvironment(flags *pflag.FlagSet, key string) bool {
	if flags == nil || !flags.Changed("config") {
		return false
	}
	if slices.Contains(databaseKeys, key) {
		return slices.ContainsFunc(databaseKeys, s.has)
	}
	return s.has(key)
}

// has reports whether the file gives the key a value.
func (s *source) has(key string) bool {
	e := find(s.entries, key)
	return e != nil && !isNull(e.value) && e.value.Value != ""
}

// givenFlag returns the flag that names the database, or "".
func givenFlag(flags *pflag.FlagSet) string {
	for _, key := range databaseKeys {
		if flags != nil && flags.Changed(flagName(key)) {
			return "--" + flagName(key)
		}
	}
	return ""
}

// inEnvironment returns the variable of the environment that names the database, or "".
func inEnvironment() string {
	for _, name := range []string{"ROTA_DATABASE", "ROTA_DATABASE_FILE"} {
		if os.Getenv(name) != "" {
			return name
		}
	}
	return ""
}
