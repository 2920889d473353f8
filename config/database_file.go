package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/viper"

	"github.com/dutyrota/rota/internal/regular"
)

// urlSetting is a place in which the URL of a database may be set: itself, or as the path of a file that holds it.
type urlSetting struct {
	name          string // of a data database
	urlKey, url   string
	fileKey, file string
	line          int // of the path
}

// database returns the URL of the roster, and the flag, the variable or the file that names it. It comes from the first
// of these that names one: the flag, a file of --config, the environment, another file. In each of them, database_file
// may stand instead of database.
func (s *source) database(v *viper.Viper) (url, from string) {
	for _, flag := range []string{"database", "database-file"} {
		if s.flags != nil && s.flags.Changed(flag) {
			return s.eitherDatabase(urlSetting{
				urlKey: "--database", url: s.flagText("database"),
				fileKey: "--database-file", file: s.flagText("database-file"), line: notInFile,
			}), "--" + flag
		}
	}
	for _, variable := range []string{"ROTA_DATABASE", "ROTA_DATABASE_FILE"} {
		if os.Getenv(variable) != "" && !s.beatsEnvironment("database") {
			return s.eitherDatabase(urlSetting{
				urlKey: "ROTA_DATABASE", url: os.Getenv("ROTA_DATABASE"),
				fileKey: "ROTA_DATABASE_FILE", file: os.Getenv("ROTA_DATABASE_FILE"), line: notInFile,
			}), variable
		}
	}
	return s.eitherDatabase(urlSetting{
		urlKey: "database", url: v.GetString("database"),
		fileKey: "database_file", file: v.GetString("database_file"), line: s.line("database_file"),
	}), s.path
}

// flagText returns the value of a flag, "" if there is no such flag.
func (s *source) flagText(name string) string {
	if flag := s.flags.Lookup(name); flag != nil {
		return flag.Value.String()
	}
	return ""
}

// eitherDatabase returns the URL, or the URL in the file.
func (s *source) eitherDatabase(u urlSetting) string {
	switch {
	case u.url != "" && u.file != "":
		s.add(u.line, "%s and %s must not both be set", u.urlKey, u.fileKey)
		return ""
	case u.file == "":
		return u.url
	case strings.Contains(u.file, "://"): // its password must not be printed
		s.add(u.line, "%s must be the path of a file, not a URL", u.fileKey)
		return ""
	}
	url, err := readSecretFile(u.file, "the URL of the database")
	if err != nil {
		s.add(u.line, "%s (%s): %s", u.fileKey, u.file, err)
	}
	return url
}

// maxSecretFile is far beyond the length of a URL.
const maxSecretFile = 64 << 10

// readSecretFile returns the one line of a file, which is what holds says. Its errors do not print the line.
//
// A file that other users may write is refused: they could send the workers to another database. A file
// that others may read is not: Docker and Kubernetes mount secrets readable for every user of the container.
func readSecretFile(path, holds string) (string, error) {
	f, err := regular.Open(path)
	if err != nil {
		return "", withoutPath(err)
	}
	defer func() { _ = f.Close() }() // it was only read
	info, err := f.Stat()
	if err != nil {
		return "", fmt.Errorf("ask for the permissions: %w", err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o002 != 0 { // Windows has no such bits
		return "", fmt.Errorf("other users may write the file (%s): chmod o-w", info.Mode().Perm())
	}
	text, err := io.ReadAll(io.LimitReader(f, maxSecretFile+1))
	if err != nil {
		return "", fmt.Errorf("read: %w", err)
	}
	return oneLine(string(text), holds)
}

// oneLine returns the line of a text that may end with a line break.
func oneLine(text, holds string) (string, error) {
	text = strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")
	if text == "" || len(text) > maxSecretFile || strings.ContainsAny(text, "\r\n") {
		return "", errors.New("must hold one line: " + holds)
	}
	return text, nil
}
