package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/viper"
)

// database returns the URL of the roster, and the flag, the variable or the file that names it. It comes from the first
// of these that names one: the flag, a file of --config, the environment, another file. In each of them, database_file
// may stand instead of database.
func (s *source) database(v *viper.Viper) (url, from string) {
	for _, flag := range []string{"database", "database-file"} {
		if s.flags != nil && s.flags.Changed(flag) {
			urlFlag, fileFlag := s.flagText("database"), s.flagText("database-file")
			return s.eitherDatabase("--database", urlFlag, "--database-file", fileFlag, notInFile), "--" + flag
		}
	}
	for _, variable := range []string{"ROTA_DATABASE", "ROTA_DATABASE_FILE"} {
		if os.Getenv(variable) != "" && !s.beatsEnvironment("database") {
			url, path := os.Getenv("ROTA_DATABASE"), os.Getenv("ROTA_DATABASE_FILE")
			return s.eitherDatabase("ROTA_DATABASE", url, "ROTA_DATABASE_FILE", path, notInFile), variable
		}
	}
	url, path := v.GetString("database"), v.GetString("database_file")
	return s.eitherDatabase("database", url, "database_file", path, s.line("database_file")), s.path
}

// flagText returns the value of a flag, "" if there is no such flag.
func (s *source) flagText(name string) string {
	if flag := s.flags.Lookup(name); flag != nil {
		return flag.Value.String()
	}
	return ""
}

// eitherDatabase returns the URL, or the URL in the file at path.
func (s *source) eitherDatabase(name, url, fileName, path string, line int) string {
	switch {
	case url != "" && path != "":
		s.add(line, "%s and %s must not both be set", name, fileName)
		return ""
	case path == "":
		return url
	case strings.Contains(path, "://"): // its password must not be printed
		s.add(line, "%s must be the path of a file, not a URL", fileName)
		return ""
	}
	url, err := readDatabaseFile(path)
	if err != nil {
		s.add(line, "%s (%s): %s", fileName, path, err)
	}
	return url
}

// maxDatabaseFile is far beyond the length of a URL.
const maxDatabaseFile = 64 << 10

// readDatabaseFile returns the one line of a file. Its errors do not print the line, which holds a password.
//
// A file that other users may write is refused: they could send the workers to another database. A file
// that others may read is not: Docker and Kubernetes mount secrets readable for every user of the container.
func readDatabaseFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", withoutPath(err)
	}
	defer func() { _ = f.Close() }() // it was only read
	info, err := f.Stat()
	if err != nil {
		return "", fmt.Errorf("ask for the permissions: %w", err)
	}
	if info.IsDir() {
		return "", errors.New("must be a file, not a directory")
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o002 != 0 { // Windows has no such bits
		return "", fmt.Errorf("other users may write the file (%s): chmod o-w", info.Mode().Perm())
	}
	text, err := io.ReadAll(io.LimitReader(f, maxDatabaseFile+1))
	if err != nil {
		return "", fmt.Errorf("read: %w", err)
	}
	text = bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r"))
	if len(text) == 0 || len(text) > maxDatabaseFile || bytes.ContainsAny(text, "\r\n") {
		return "", errors.New("must hold one line: the URL of the database")
	}
	return string(text), nil
}
