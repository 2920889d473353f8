package config

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"
	"go.yaml.in/yaml/v3"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
)

// key is a top-level key that has a single value. Flags override it, and so does the environment if --config does not
// name the file.
type key struct {
	name string
	help string // of its flag, without the variable of the environment
	// set writes the value, which is not empty, into the file. Its error is the rule that the value breaks. It is nil for
	// the keys that name databases, because they exclude each other.
	set func(f *File, text string) error

	switches bool // its flag needs no value: it is true or false
	repeats  bool // its flag may be repeated
}

// connectionKeys are the keys of each command that connects to a roster.
var connectionKeys = []key{
	{name: "database", help: "URL of the roster's database: postgres://, mysql:// or sqlite:FILE"},
	{name: "database_file", help: "file whose one line is the URL, such as a mounted secret, instead of --database"},
	{name: "data", repeats: true, help: "data database as NAME=URL, besides those of the file; repeat it for several"},
	{
		name: "data_file", repeats: true,
		help: "data database as NAME=FILE, a file whose one line is the URL; repeat it for several",
	},
	{
		name: "own_sign",
		help: "environment; several can share a database",
		set: func(f *File, text string) error {
			f.OwnSign = text
			return rule(roster.ValidName(text, text, roster.MaxOwnSign) == nil,
				fmt.Sprintf("must have at most %d bytes, and be printable, without white space around it", roster.MaxOwnSign))
		},
	},
	{
		name: "schema",
		help: "what to do if tables are missing: auto, create or require",
		set: func(f *File, text string) error {
			f.Schema = center.SchemaMode(text)
			switch f.Schema {
			case center.SchemaAuto, center.SchemaCreate, center.SchemaRequire:
				return nil
			}
			return errors.New("must be auto, create or require")
		},
	},
}

// keys are all keys, in an order in which each key may refer to those above it.
var keys = append(slices.Clone(connectionKeys),
	key{
		name: "http",
		help: "host:port for /livez, /readyz, /metrics, /scale; not served if empty",
		set:  func(f *File, text string) error { return setAddress(&f.HTTP, text) },
	},
	key{
		name: "probes",
		help: "host:port for /livez and /readyz alone, which no other client can keep busy; not served if empty",
		set:  func(f *File, text string) error { return setAddress(&f.Probes, text) },
	},
	key{
		name: "console", switches: true,
		help: "serve the console at --http too, to clients on this host, who may look",
		set: func(f *File, text string) error {
			if err := setBool(&f.Console, text); err != nil {
				return err
			}
			return rule(!f.Console || f.HTTP != "", "needs http, the address to serve it at")
		},
	},
	key{
		name: "exit_on_unreachable", switches: true,
		help: "exit if the database cannot be reached at the start, instead of waiting",
		set:  func(f *File, text string) error { return setBool(&f.ExitOnUnreachable, text) },
	},
	key{
		name: "apply_settings", switches: true,
		help: "apply the settings of the file at the start, so that the last start wins: for one worker on one machine",
		set:  func(f *File, text string) error { return setBool(&f.Process.ApplySettings, text) },
	},
	key{
		name: "labels",
		help: "what this worker has, such as disk=ssd,zone=b; for require, prefer and spread of task types",
		set: func(f *File, text string) (err error) {
			f.Process.Labels, err = plan.ParseLabels(text)
			return err
		},
	},
	key{
		name: "name",
		help: "name of this worker, which it has again after a restart, such as its host's; for --return-within",
		set: func(f *File, text string) error {
			f.Process.Name = text
			return rule(roster.CheckReturn(text, 0) == nil, "must have at most 100 bytes, and no control characters")
		},
	},
	key{
		name: "return_within",
		help: "keep the queues of a worker that stops for its return, at most so long, such as 30s; not if empty",
		set: func(f *File, text string) error {
			const want = "must be a positive duration of at most 1h with its unit, such as 30s"
			if err := setDuration(&f.Process.ReturnWithin, text, roster.MaxReturn, want); err != nil {
				return err
			}
			return rule(f.Process.Name != "", "needs name, by which the worker is known when it returns")
		},
	},
	key{
		name: "dealer_conns",
		help: "how many connections the dealers of all tasks have at most; 32 if empty",
		set: func(f *File, text string) (err error) {
			f.DealerConns, err = strconv.Atoi(text)
			return rule(err == nil && f.DealerConns >= 1, "must be a whole number of at least 1")
		},
	},
	key{
		name: "idle_tx_timeout",
		help: "how long a fenced transaction may be idle until the database ends it, or none; 1m if empty",
		set:  func(f *File, text string) error { return setTimeout(&f.IdleTxTimeout, text) },
	},
	key{
		name: "reply_timeout",
		help: "how long a dealer's statement waits for the database, or none; 1m on Galera and in data databases, " +
			"15m elsewhere if empty",
		set: func(f *File, text string) error { return setTimeout(&f.ReplyTimeout, text) },
	},
	key{
		name: "item_retention",
		help: "how long the records of dead items stay; 720h if empty",
		set: func(f *File, text string) error {
			const want = "must be a positive duration with its unit, such as 720h"
			return setDuration(&f.Process.ItemRetention, text, sqldb.MaxDuration, want)
		},
	},
	key{
		name: "witness_dir",
		help: "directory of this host in which processes prove that they run, such as /run/rota; none if empty",
		set: func(f *File, text string) error {
			f.Process.WitnessDir = text
			return rule(filepath.IsAbs(text), "must be an absolute path, such as /run/rota")
		},
	},
	key{
		name: "hints",
		help: "whether the process listens for the hints of others, on a connection of its own: true or false; true if empty",
		set: func(f *File, text string) error {
			hints, err := strconv.ParseBool(text)
			f.Process.NoHints = err == nil && !hints
			return rule(err == nil, "must be true or false")
		},
	},
	key{
		name: "weight",
		help: "part of the queues, in proportion to the weights of other workers, 0 for none; 1 if empty",
		set: func(f *File, text string) error {
			n, err := strconv.Atoi(text)
			f.Process.Weight = &n
			want := fmt.Sprintf("must be a whole number from 0 to %d", roster.MaxWeight)
			return rule(err == nil && roster.CheckWeight(n) == nil, want)
		},
	},
)

// rule returns an error that says the rule, unless it is met.
func rule(met bool, text string) error {
	if met {
		return nil
	}
	return errors.New(text)
}

func setBool(to *bool, text string) (err error) {
	*to, err = strconv.ParseBool(text)
	return rule(err == nil, "must be true or false")
}

// setAddress sets the address of a listener.
func setAddress(to *string, text string) error {
	*to = text
	_, port, err := net.SplitHostPort(text)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	return rule(err == nil, "must be host:port, such as 127.0.0.1:9090, with a port of at most 65535")
}

// setTimeout sets a time-out of the database. A negative one is none.
func setTimeout(to *time.Duration, text string) error {
	if text == "none" {
		*to = -1
		return nil
	}
	return setDuration(to, text, 24*time.Hour,
		"must be none or a duration with its unit, such as 90s or 5m, of at most 24h")
}

func setDuration(to *time.Duration, text string, most time.Duration, want string) (err error) {
	*to, err = time.ParseDuration(text)
	return rule(err == nil && *to > 0 && *to <= most, want)
}

func (k key) flag() string     { return strings.ReplaceAll(k.name, "_", "-") }
func (k key) variable() string { return "ROTA_" + strings.ToUpper(k.name) }

// AddFlags defines the flags of the keys with these names, or of all keys if no name is given. A flag that is there
// already stays.
func AddFlags(flags *pflag.FlagSet, names ...string) {
	for _, k := range keys {
		switch help := k.help + " (" + k.variable() + ")"; {
		case len(names) > 0 && !slices.Contains(names, k.name), flags.Lookup(k.flag()) != nil:
		case k.switches:
			flags.Bool(k.flag(), false, help)
		case k.repeats:
			flags.StringArray(k.flag(), nil, help)
		default:
			flags.String(k.flag(), "", help)
		}
	}
}

// single reads keys into f.
func (s *source) single(f *File, keys []key) {
	v := s.values()
	before := len(s.problems)
	f.Database, f.DatabaseFrom = s.database(v)
	if f.Database == "" && before == len(s.problems) {
		s.add(0, "database is missing: set it in the file, with --database or in ROTA_DATABASE")
	}
	f.Data = s.data()
	for _, k := range keys {
		text := v.GetString(k.name)
		if k.set == nil || text == "" {
			continue
		}
		if err := k.set(f, text); err != nil {
			s.addKeyProblem(k, text, err.Error())
		}
	}
}

// values reads the keys: from the flags, else from a file of --config, else the environment, else another file.
func (s *source) values() *viper.Viper {
	v := viper.New()
	v.SetEnvPrefix("ROTA")
	for _, k := range keys {
		if !s.beatsEnvironment(k.name) {
			_ = v.BindEnv(k.name) // fails only without a key; viper does not look for an unbound key in the environment
		}
		if s.flags == nil {
			continue
		}
		if flag := s.flags.Lookup(k.flag()); flag != nil {
			_ = v.BindPFlag(k.name, flag) // fails only without a flag
		}
	}
	_ = v.MergeConfigMap(s.inFile()) // always returns nil
	return v
}

// inFile returns the values of the keys in the file.
func (s *source) inFile() map[string]any {
	known := []string{"tasks"}
	for _, k := range keys {
		if k.name != "data_file" { // in the file, data names both
			known = append(known, k.name)
		}
	}
	s.checkKeys("", s.entries, known)
	values := map[string]any{}
	for _, e := range s.entries {
		switch {
		case e.key == "tasks", e.key == "data":
		case e.key == "labels" && e.value.Kind == yaml.MappingNode:
			values[e.key] = s.labelList(e.value)
		case e.key == "labels" && e.value.Kind == yaml.SequenceNode:
			s.add(e.line, "labels: must be a mapping of labels to values, such as {zone: b, disk: ssd}")
		default:
			if text, ok := s.text(e.key, e.value); ok {
				values[e.key] = text
			}
		}
	}
	return values
}

// labelList returns a mapping of labels as the list that a flag would have: disk=ssd,zone=b.
func (s *source) labelList(n *yaml.Node) string {
	var list []string
	for _, e := range s.mapping("labels", n) {
		if value, ok := s.text("labels."+e.key, e.value); ok {
			list = append(list, e.key+"="+value)
		}
	}
	return strings.Join(list, ",")
}

// namesFile reports whether the user has named the file with --config.
func (s *source) namesFile() bool { return s.flags != nil && s.flags.Changed("config") }

// beatsEnvironment reports whether the file's value of a key wins over the environment: the user has named the file
// with --config, and it has the key. A user who names a file wants its roster, and does not expect a variable of the
// shell to decide.
func (s *source) beatsEnvironment(name string) bool {
	if !s.namesFile() {
		return false
	}
	if name == "database" || name == "database_file" {
		return s.has("database") || s.has("database_file")
	}
	return s.has(name)
}

// has reports whether the file gives the key a value.
func (s *source) has(name string) bool {
	e := find(s.entries, name)
	return e != nil && !isNull(e.value) && (e.value.Value != "" || len(e.value.Content) > 0) // labels are a mapping
}

// addKeyProblem adds a problem of a key. It names where the value was set.
func (s *source) addKeyProblem(k key, value, rule string) {
	switch {
	case s.flags != nil && s.flags.Changed(k.flag()):
		s.add(notInFile, "--%s (%s): %s", k.flag(), value, rule)
	case os.Getenv(k.variable()) != "" && !s.beatsEnvironment(k.name):
		s.add(notInFile, "%s (%s): %s", k.variable(), value, rule)
	default:
		s.add(s.line(k.name), "%s (%s): %s", k.name, value, rule) // 0 in another case, such as sChema, which viper takes
	}
}
