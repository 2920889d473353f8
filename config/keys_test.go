package config

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/manager"
)

// A file that the user names with --config wins over the environment. A file that was merely found does not.
func TestNamedFileBeatsEnvironment(t *testing.T) {
	secret := write(t, secretURL)
	file := write(t, "database: sqlite:file.db\nown_sign: FILE")
	secretFile := write(t, "database_file: "+secret)
	empty := write(t, "own_sign:\ntasks:")
	for name, test := range map[string]struct {
		file, config, flag, variable string
		url, from, ownSign           string
	}{
		"file of --config":                 {file: file, config: file, variable: "ROTA_DATABASE", url: "sqlite:file.db", from: file, ownSign: "FILE"},
		"file of --config, secret outside": {file: file, config: file, variable: "ROTA_DATABASE_FILE", url: "sqlite:file.db", from: file, ownSign: "FILE"},
		"secret file of --config":          {file: secretFile, config: secretFile, variable: "ROTA_DATABASE", url: secretURL, from: secretFile, ownSign: "ENV"},
		"file of --config without keys":    {file: empty, config: empty, variable: "ROTA_DATABASE", url: "sqlite:env.db", from: "ROTA_DATABASE", ownSign: "ENV"},
		"found file":                       {file: file, variable: "ROTA_DATABASE", url: "sqlite:env.db", from: "ROTA_DATABASE", ownSign: "ENV"},
		"found file, no variable":          {file: file, url: "sqlite:file.db", from: file, ownSign: "ENV"},
		"flag":                             {file: file, config: file, flag: "sqlite:flag.db", variable: "ROTA_DATABASE", url: "sqlite:flag.db", from: "--database", ownSign: "FILE"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("ROTA_OWN_SIGN", "ENV")
			switch test.variable {
			case "ROTA_DATABASE":
				t.Setenv(test.variable, "sqlite:env.db")
			case "ROTA_DATABASE_FILE":
				t.Setenv(test.variable, secret)
			}
			c, err := LoadConnection(test.file, connectionFlags(t, test.config, test.flag))
			if err != nil || c.Database != test.url || c.DatabaseFrom != test.from || c.OwnSign != test.ownSign {
				t.Errorf("got %+v, %v; want %s from %s, own_sign %s", c, err, test.url, test.from, test.ownSign)
			}
		})
	}
}

// The problem of a value names the place that the value comes from.
func TestProblemsNameTheirPlace(t *testing.T) {
	t.Setenv("ROTA_SCHEMA", "create")
	path := write(t, minimal+"schema: yes")
	_, err := Load(path, connectionFlags(t, path, ""))
	wantLines(t, err, path+":3: schema (yes): must be auto, create or require")
}

func connectionFlags(t *testing.T, config, database string) *pflag.FlagSet {
	t.Helper()
	flags := flagSet(t, "database", database)
	flags.String("config", "rota.yaml", "")
	if config != "" {
		if err := flags.Set("config", config); err != nil {
			t.Fatal(err)
		}
	}
	return flags
}

// Each key is read from the file, and its flag wins over the file.
func TestKeys(t *testing.T) {
	zoneB := manager.Config{Labels: map[string]string{"zone": "b", "disk": "ssd"}}
	for text, test := range map[string]struct {
		flag, value string
		options     center.Options
		process     manager.Config
	}{
		"": {},

		"labels: {zone: b, disk: ssd}":        {process: zoneB},
		"labels:\n  zone: b\n  disk: ssd":     {process: zoneB},
		"labels: disk=ssd,zone=b":             {process: zoneB},
		"labels: {zone: &z b, cell: *z}":      {process: manager.Config{Labels: map[string]string{"zone": "b", "cell": "b"}}},
		"labels: {zone: b, disk: ssd} # flag": {flag: "labels", value: "zone=c", process: manager.Config{Labels: map[string]string{"zone": "c"}}},

		"dealer_conns: 3":             {options: center.Options{DealerConns: 3}},
		"idle_tx_timeout: 90s":        {options: center.Options{IdleTxTimeout: 90 * time.Second}},
		"idle_tx_timeout: none":       {options: center.Options{IdleTxTimeout: -1}},
		"reply_timeout: 90s":          {options: center.Options{ReplyTimeout: 90 * time.Second}},
		"reply_timeout: none":         {options: center.Options{ReplyTimeout: -1}},
		"idle_tx_timeout: 90s # flag": {flag: "idle-tx-timeout", value: "3m", options: center.Options{IdleTxTimeout: 3 * time.Minute}},

		"item_retention: 240h":        {process: manager.Config{ItemRetention: 240 * time.Hour}},
		"item_retention: 240h # flag": {flag: "item-retention", value: "48h", process: manager.Config{ItemRetention: 48 * time.Hour}},

		"name: web-0\nreturn_within: 30s": {process: manager.Config{Name: "web-0", ReturnWithin: 30 * time.Second}},

		"hints: false":                  {process: manager.Config{NoHints: true}},
		"hints: true":                   {},
		"witness_dir: /run/rota":        {process: manager.Config{WitnessDir: "/run/rota"}},
		"witness_dir: /run/rota # flag": {flag: "witness-dir", value: "/dev/shm/rota", process: manager.Config{WitnessDir: "/dev/shm/rota"}},

		"weight: 0":        {process: manager.Config{Weight: new(0)}},
		"weight: 1000":     {process: manager.Config{Weight: new(1000)}},
		"weight: 3 # flag": {flag: "weight", value: "0", process: manager.Config{Weight: new(0)}},
	} {
		f, err := Load(write(t, text+"\n"+minimal), flagSet(t, test.flag, test.value))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if diff := cmp.Diff(test.options, f.Options); diff != "" {
			t.Errorf("%s: options (-want +got)\n%s", text, diff)
		}
		if diff := cmp.Diff(test.process, f.Process); diff != "" {
			t.Errorf("%s: process (-want +got)\n%s", text, diff)
		}
	}
}

func TestNameOfTheEnvironment(t *testing.T) {
	t.Setenv("ROTA_NAME", "web-1")
	f, err := Load(write(t, "return_within: 30s\n"+minimal), nil)
	if err != nil || f.Process.Name != "web-1" {
		t.Errorf("%+v, %v", f, err)
	}
}

// A mapping of labels wins over the environment as any other value does, if the user has named the file.
func TestLabelsOfANamedFile(t *testing.T) {
	t.Setenv("ROTA_LABELS", "zone=c")
	for text, want := range map[string]string{"labels: {zone: b}": "b", "labels: zone=b": "b", "labels: {}": "c", "": "c"} {
		path := write(t, text+"\n"+minimal)
		f, err := Load(path, connectionFlags(t, path, ""))
		if err != nil || f.Process.Labels["zone"] != want {
			t.Errorf("%q with -c: %v, %v, want zone=%s", text, f.Process.Labels, err, want)
		}
		f, err = Load(path, connectionFlags(t, "", ""))
		if err != nil || f.Process.Labels["zone"] != "c" {
			t.Errorf("%q without -c: %v, %v, want zone=c", text, f.Process.Labels, err)
		}
	}
}

// badKeys has, for each text of one or two lines, the problem of the last one.
var badKeys = map[string]string{
	"labels: {Zone: b}":      "labels (Zone=b): label (\"Zone\") must be a name of a to z, digits and -._/ with at most 63 characters",
	"labels: {zone: 'a b'}":  "labels (zone=a b): label zone (\"a b\") must have a value of letters, digits and -._ with at most 63 characters",
	"labels: {host: web1}":   "labels (host=web1): label host: each server has it already, with the name of its host",
	"labels: zone":           "labels (zone): must be a list such as disk=ssd,zone=b, each label once",
	"labels: {zone: [a, b]}": "labels.zone: must be a single value, not a list or mapping",

	"dealer_conns: 0":      "dealer_conns (0): must be a whole number of at least 1",
	"dealer_conns: -1":     "dealer_conns (-1): must be a whole number of at least 1",
	"dealer_conns: many":   "dealer_conns (many): must be a whole number of at least 1",
	"idle_tx_timeout: 0s":  "idle_tx_timeout (0s): " + wantIdle,
	"idle_tx_timeout: -1s": "idle_tx_timeout (-1s): " + wantIdle,
	"idle_tx_timeout: 60":  "idle_tx_timeout (60): " + wantIdle,
	"idle_tx_timeout: 25h": "idle_tx_timeout (25h): " + wantIdle,
	"reply_timeout: 25h":   "reply_timeout (25h): " + wantIdle,

	"item_retention: 0s":      "item_retention (0s): must be a positive duration with its unit, such as 720h",
	"item_retention: 30d":     "item_retention (30d): must be a positive duration with its unit, such as 720h",
	"item_retention: forever": "item_retention (forever): must be a positive duration with its unit, such as 720h",

	"return_within: 30s":                "return_within (30s): needs name, by which the worker is known when it returns",
	"name: a\nreturn_within: 2h":        "return_within (2h): must be a positive duration of at most 1h with its unit, such as 30s",
	"name: a\nreturn_within: 30":        "return_within (30): must be a positive duration of at most 1h with its unit, such as 30s",
	"name: a\nreturn_within: -1s":       "return_within (-1s): must be a positive duration of at most 1h with its unit, such as 30s",
	"name: " + strings.Repeat("x", 101): "name (" + strings.Repeat("x", 101) + "): must have at most 100 bytes, and no control characters",

	"hints: none":           "hints (none): must be true or false",
	"witness_dir: run/rota": "witness_dir (run/rota): must be an absolute path, such as /run/rota",

	"weight: -1":    "weight (-1): must be a whole number from 0 to 1000",
	"weight: 1001":  "weight (1001): must be a whole number from 0 to 1000",
	"weight: 1.5":   "weight (1.5): must be a whole number from 0 to 1000",
	"weight: heavy": "weight (heavy): must be a whole number from 0 to 1000",
}

const wantIdle = "must be none or a duration with its unit, such as 90s or 5m, of at most 24h"

func TestBadKeys(t *testing.T) {
	for text, want := range badKeys {
		path := write(t, text+"\n"+minimal)
		_, err := Load(path, nil)
		wantLines(t, err, fmt.Sprintf("%s:%d: %s", path, 1+strings.Count(text, "\n"), want))
	}
	t.Setenv("ROTA_WEIGHT", "light")
	_, err := Load(write(t, "weight: 1\n"+minimal), flagSet(t, "idle-tx-timeout", "soon"))
	wantLines(t, err, "--idle-tx-timeout (soon): "+wantIdle+"\nROTA_WEIGHT (light): must be a whole number from 0 to 1000")
}

// AddFlags defines a flag for each key that is not there yet.
func TestAddFlags(t *testing.T) {
	flags := flagSet(t, "database", "sqlite:x.db")
	AddFlags(flags)
	for _, k := range keys {
		if flags.Lookup(k.flag()) == nil {
			t.Errorf("no flag --%s", k.flag())
		}
	}
	if err := flags.Parse([]string{"--console", "--http=127.0.0.1:1", "--weight", "7"}); err != nil {
		t.Fatal(err)
	}
	f, err := Load(write(t, "tasks: {settle: {queues: 1}}"), flags)
	if err != nil || !f.Console || f.HTTP != "127.0.0.1:1" || f.Database != "sqlite:x.db" || *f.Process.Weight != 7 {
		t.Errorf("%+v, %v", f, err)
	}
}

// ifEmpty is the default of a key, in the help of its flag.
var ifEmpty = regexp.MustCompile(`; (\d\w*|true) if empty$`)

// The page lists each key of a file, with the default that the help of its flag names.
func TestPageListsTheKeys(t *testing.T) {
	page, err := os.ReadFile("../docs/settings.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "\n| key | default | meaning |\n|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	defaults := map[string]string{}
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		for name := range strings.SplitSeq(cells[1], ",") {
			defaults[strings.Trim(name, "` ")] = strings.Trim(cells[2], "` ")
		}
	}
	for _, k := range keys {
		if k.name == "data_file" { // in the file, data names both
			continue
		}
		onPage, listed := defaults[k.name]
		if !listed {
			t.Errorf("docs/settings.md does not list the key %s", k.name)
		}
		delete(defaults, k.name)
		if m := ifEmpty.FindStringSubmatch(k.help); m != nil && onPage != m[1] {
			t.Errorf("%s: the default is %q in docs/settings.md and %q in the help", k.name, onPage, m[1])
		}
	}
	for name := range defaults {
		t.Errorf("docs/settings.md lists %s, which is no key", name)
	}
}
