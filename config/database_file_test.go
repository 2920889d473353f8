package config

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

const secretURL = "postgres://app:secret@db/shop"

func TestDatabaseFile(t *testing.T) {
	secret := write(t, secretURL+"\n")
	elsewhere := write(t, "sqlite:x.db\r\n")
	file := write(t, "database_file: "+secret)
	for name, test := range map[string]struct {
		env  map[string]string
		flag string
		path string
		want string
	}{
		"file":                           {path: file, want: secretURL},
		"environment without a file":     {env: map[string]string{"ROTA_DATABASE_FILE": secret}, want: secretURL},
		"environment before file":        {env: map[string]string{"ROTA_DATABASE_FILE": elsewhere}, path: file, want: "sqlite:x.db"},
		"URL in environment before file": {env: map[string]string{"ROTA_DATABASE": "sqlite:y.db"}, path: file, want: "sqlite:y.db"},
		"environment before URL in file": {env: map[string]string{"ROTA_DATABASE_FILE": elsewhere}, path: write(t, "database: sqlite:y.db"), want: "sqlite:x.db"},
		"flag before all":                {env: map[string]string{"ROTA_DATABASE_FILE": elsewhere}, path: file, flag: "sqlite:z.db", want: "sqlite:z.db"},
	} {
		t.Run(name, func(t *testing.T) {
			for key, value := range test.env {
				t.Setenv(key, value)
			}
			c, err := LoadConnection(test.path, flagSet(t, "database", test.flag))
			if err != nil || c.Database != test.want {
				t.Errorf("got %s, %v; want %s", c.Database, err, test.want)
			}
		})
	}
}

func TestBadDatabaseFiles(t *testing.T) {
	folder := t.TempDir()
	open := write(t, secretURL)
	if err := os.Chmod(open, 0o646); err != nil {
		t.Fatal(err)
	}
	cases := map[string]string{
		filepath.Join(folder, "none"):       "(FILE): no such file or directory",
		folder:                              "(FILE): must be a regular file, not a directory",
		write(t, ""):                        "(FILE): must hold one line: the URL of the database",
		write(t, secretURL+"\nsecret"):      "(FILE): must hold one line: the URL of the database",
		write(t, strings.Repeat("x", 1e5)):  "(FILE): must hold one line: the URL of the database",
		"postgres://app:secret@db/database": "must be the path of a file, not a URL",
	}
	if runtime.GOOS != "windows" {
		cases[open] = "(FILE): other users may write the file (-rw-r--rw-): chmod o-w"
	}
	for path, want := range cases {
		want = strings.ReplaceAll(want, "FILE", path)
		config := write(t, "database_file: "+path)
		if _, err := LoadConnection(config, nil); err == nil || err.Error() != config+":1: database_file "+want {
			t.Errorf("got %v, want %s", err, want)
		}
		t.Setenv("ROTA_DATABASE_FILE", path)
		if _, err := LoadConnection("", nil); err == nil || err.Error() != "ROTA_DATABASE_FILE "+want {
			t.Errorf("got %v, want %s", err, want)
		}
		t.Setenv("ROTA_DATABASE_FILE", "")
	}
}

// One of them would be ignored.
func TestDatabaseAndDatabaseFile(t *testing.T) {
	path := write(t, "database: sqlite:x.db\ndatabase_file: y")
	_, err := LoadConnection(path, nil)
	wantLines(t, err, path+":2: database and database_file must not both be set")
	t.Setenv("ROTA_DATABASE", "sqlite:x.db")
	t.Setenv("ROTA_DATABASE_FILE", "y")
	_, err = LoadConnection("", nil)
	wantLines(t, err, "ROTA_DATABASE and ROTA_DATABASE_FILE must not both be set")
}

func TestDatabaseFileFlag(t *testing.T) {
	secret := write(t, secretURL+"\n")
	t.Setenv("ROTA_DATABASE", "sqlite:environment.db")
	c, err := LoadConnection(write(t, "database: sqlite:file.db"), flagSet(t, "database-file", secret))
	if err != nil || c.Database != secretURL {
		t.Errorf("got %s, %v; want the URL in the file of the flag", c.Database, err)
	}
	flags := flagSet(t, "database-file", secret)
	flags.String("database", "", "")
	if err := flags.Set("database", "sqlite:flag.db"); err != nil {
		t.Fatal(err)
	}
	_, err = LoadConnection("", flags)
	wantLines(t, err, "--database and --database-file must not both be set")
	_, err = LoadConnection("", flagSet(t, "database-file", secretURL))
	wantLines(t, err, "--database-file must be the path of a file, not a URL")
}
