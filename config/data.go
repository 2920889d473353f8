package config

import (
	"maps"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/dutyrota/rota/internal/roster"
)

// DataDatabase is an entry below "data": a database apart from the roster's that holds items.
type DataDatabase struct {
	Name string
	// URL is as Connection.Database. It is empty if the flags lack the flag data: the command uses no data database, and
	// needs none of their secrets.
	URL string
}

// data returns the data databases by name. The flags, the environment and the file add to each other. The URL of each
// comes from the first of these that names it: the flags, a file of --config, the environment, another file.
func (s *source) data() (list []DataDatabase) {
	sources := [][]urlSetting{s.dataFlags(), s.dataVariables(), s.dataInFile()}
	if s.namesFile() {
		sources[1], sources[2] = sources[2], sources[1]
	}
	used := s.flags == nil || s.flags.Lookup("data") != nil
	named := map[string]bool{}
	for _, settings := range sources {
		for _, u := range settings {
			if named[u.name] {
				continue
			}
			named[u.name] = true
			d := DataDatabase{Name: u.name}
			if used {
				d.URL = s.eitherDatabase(u)
			}
			list = append(list, d)
		}
	}
	slices.SortFunc(list, func(a, b DataDatabase) int { return strings.Compare(a.Name, b.Name) })
	return list
}

func (s *source) dataFlags() []urlSetting {
	if s.flags == nil {
		return nil
	}
	urls, _ := s.flags.GetStringArray("data") // none without the flag
	files, _ := s.flags.GetStringArray("data-file")
	return s.dataLists("--data", urls, "--data-file", files)
}

// dataVariables returns what the environment names. White space separates the databases: neither a name nor a URL has
// any.
func (s *source) dataVariables() []urlSetting {
	return s.dataLists("ROTA_DATA", strings.Fields(os.Getenv("ROTA_DATA")),
		"ROTA_DATA_FILE", strings.Fields(os.Getenv("ROTA_DATA_FILE")))
}

// dataList is a list of NAME=URL or NAME=FILE.
type dataList struct {
	key, form, example string
	items              []string
	field              func(*urlSetting) *string
}

// dataLists returns the databases that two lists name. Its errors do not print what may be a URL with a password.
func (s *source) dataLists(urlKey string, urls []string, fileKey string, files []string) (settings []urlSetting) {
	for _, l := range []dataList{
		{urlKey, "URL", "postgres://app@db2/shop", urls, func(u *urlSetting) *string { return &u.url }},
		{fileKey, "FILE", "/run/secrets/orders", files, func(u *urlSetting) *string { return &u.file }},
	} {
		for _, item := range l.items {
			name, value, _ := strings.Cut(item, "=")
			if value == "" || strings.Contains(name, ":") { // a URL without a name may have both
				s.add(notInFile, "%s must be NAME=%s, such as orders=%s", l.key, l.form, l.example)
				continue
			}
			if err := roster.CheckDataName(name); err != nil {
				s.add(notInFile, "%s: %s", l.key, err)
				continue
			}
			i := slices.IndexFunc(settings, func(u urlSetting) bool { return u.name == name })
			if i < 0 {
				i, settings = len(settings), append(settings, urlSetting{
					name: name, urlKey: urlKey + " " + name, fileKey: fileKey + " " + name, line: notInFile,
				})
			}
			if field := l.field(&settings[i]); *field == "" {
				*field = value
			} else {
				s.add(notInFile, "%s names %s twice", l.key, name)
			}
		}
	}
	return settings
}

// dataInFile returns the databases of the file: each is a URL, or a mapping with database or database_file.
func (s *source) dataInFile() (list []urlSetting) {
	e := find(s.entries, "data")
	if e == nil {
		return nil
	}
	for _, e := range s.mapping("data", e.value) {
		path, before := "data."+e.key, len(s.problems)
		if err := roster.CheckDataName(e.key); err != nil {
			s.add(e.line, "data: %s", err)
			continue
		}
		u := urlSetting{
			name: e.key, urlKey: path + ".database", fileKey: path + ".database_file", line: e.line,
		}
		if e.value.Kind == yaml.MappingNode {
			s.dataEntry(path, e.value, &u)
		} else {
			u.url, _ = s.text(path, e.value)
		}
		if before == len(s.problems) && u.url == "" && u.file == "" {
			s.add(e.line, "%s must be the URL of a database, or have database or database_file", path)
		}
		list = append(list, u)
	}
	return list
}

func (s *source) dataEntry(path string, n *yaml.Node, u *urlSetting) {
	fields := map[string]*string{"database": &u.url, "database_file": &u.file}
	entries := s.mapping(path, n)
	s.checkKeys(path, entries, slices.Collect(maps.Keys(fields)))
	for _, e := range entries {
		if field := fields[e.key]; field != nil {
			*field, _ = s.text(path+"."+e.key, e.value)
		}
		if e.key == "database_file" {
			u.line = e.line
		}
	}
}
