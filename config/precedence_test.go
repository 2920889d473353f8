package config

import (
	"testing"

	"github.com/spf13/pflag"
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
