package config

import (
	"os"
	"strings"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"
	"go.yaml.in/yaml/v3"

	"github.com/dutyrota/rota/center"
)

// scalarKeys are the top-level keys. Flags override them, and so does the environment if --config does not name the file.
var scalarKeys = []string{"database", "database_file", "own_sign", "http", "console", "exit_on_unreachable", "schema", "idle_dealer_conns", "idle_tx_timeout", "item_retention", "weight", "witness_dir", "name", "return_within", "labels"}

// scalars reads the top-level keys: from the flags, else from a file of --config,
// else the environment, else another file.
func (s *source) scalars(flags *pflag.FlagSet) *viper.Viper {
	v := viper.New()
	v.SetEnvPrefix("ROTA")
	for _, key := range scalarKeys {
		if !s.beatsEnvironment(flags, key) {
			_ = v.BindEnv(key) // fails only without a key; viper does not look for an unbound key in the environment
		}
		if flags == nil {
			continue
		}
		if flag := flags.Lookup(flagName(key)); flag != nil {
			_ = v.BindPFlag(key, flag) // fails only without a flag
		}
	}
	_ = v.MergeConfigMap(s.fileScalars()) // always returns nil
	return v
}

func (s *source) fileScalars() map[string]any {
	values := map[string]any{}
	s.checkKeys("", s.entries, append([]string{"tasks"}, scalarKeys...))
	for _, e := range s.entries {
		if e.key == "tasks" {
			continue
		}
		if e.key == "labels" && e.value.Kind == yaml.MappingNode {
			values[e.key] = s.labelList(e.value)
		} else if e.key == "labels" && e.value.Kind == yaml.SequenceNode {
			s.add(e.line, "labels: must be a mapping of labels to values, such as {zone: b, disk: ssd}")
		} else if text, ok := s.text(e.key, e.value); ok {
			values[e.key] = text
		}
	}
	return values
}

func (s *source) connection(v *viper.Viper, flags *pflag.FlagSet) Connection {
	before := len(s.problems)
	c := Connection{
		OwnSign: v.GetString("own_sign"),
		Schema:  center.SchemaMode(v.GetString("schema")),
	}
	c.Database, c.DatabaseFrom = s.database(v, flags)
	if c.Database == "" && before == len(s.problems) {
		s.add(0, "database is missing: set it in the file, with --database or in ROTA_DATABASE")
	}
	switch c.Schema {
	case "", center.SchemaAuto, center.SchemaCreate, center.SchemaRequire:
	default:
		s.addScalarProblem(flags, "schema", string(c.Schema), "must be auto, create or require")
	}
	return c
}

// addScalarProblem adds a problem of a scalar. It names where the scalar was set.
func (s *source) addScalarProblem(flags *pflag.FlagSet, key, value, rule string) {
	switch flag, env := flagName(key), "ROTA_"+strings.ToUpper(key); {
	case flags != nil && flags.Changed(flag):
		s.add(notInFile, "--%s (%s): %s", flag, value, rule)
	case os.Getenv(env) != "" && !s.beatsEnvironment(flags, key):
		s.add(notInFile, "%s (%s): %s", env, value, rule)
	default:
		line := 0
		if e := find(s.entries, key); e != nil { // viper also takes the key in another case, such as sChema
			line = e.line
		}
		s.add(line, "%s (%s): %s", key, value, rule)
	}
}

func flagName(key string) string { return strings.ReplaceAll(key, "_", "-") }

// text returns a scalar as the file spells it: 007 stays 007.
func (s *source) text(path string, n *yaml.Node) (string, bool) {
	switch {
	case isNull(n):
		return "", true
	case n.Kind != yaml.ScalarNode:
		s.add(n.Line, "%s: must be a single value, not a list or mapping", path)
		return "", false
	}
	return n.Value, true
}
