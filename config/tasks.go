package config

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/escape"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/runs"
)

// fields returns, for each setting that is a single value, a pointer to its field in s. The other settings are
// "queues", a number or a list, and "after", a list.
func fields(s *center.Settings) map[string]any {
	to := map[string]any{}
	for _, row := range center.SettingTable() {
		if row.Name != "queues" && row.Name != "after" {
			to[row.Name] = row.Field(s)
		}
	}
	return to
}

var (
	taskKeys   = append(slices.Sorted(maps.Keys(fields(&center.Settings{}))), "queues", "after", "after_any", "dealer")
	dealerKeys = []string{"sql", "command", "http", "answers", "env"}
)

// readWithDealer are the entries of a task on which the rules of its dealer depend.
var readWithDealer = []string{"dealer", "mode", "queues", "database"}

// sqlFields returns, for each key below "sql", a pointer to its field in d.
func sqlFields(d *SQLDealer) map[string]any {
	return map[string]any{
		"select": &d.Select, "execute": &d.Execute, "execute_each": &d.ExecuteEach, "discard": &d.Discard,
		"backlog": &d.Backlog,
		"key":     &d.Key, "order_key": &d.OrderKey, "after_start": &d.AfterStart,
		"cursor": &d.Cursor, "cursor_start": &d.CursorStart,
		"cursor_lag": &d.CursorLag, "cursor_newest": &d.CursorNewest, "commits_in_order": &d.CommitsInOrder,
	}
}

// taskSource reads the entry "tasks" of a file.
type taskSource struct {
	*source
	data []DataDatabase
}

func (s taskSource) tasks() []Task {
	var line int
	var entries []entry
	if e := find(s.entries, "tasks"); e != nil {
		line, entries = e.line, s.mapping("tasks", e.value)
	}
	if len(entries) == 0 {
		s.add(line, "tasks: must name at least one task type")
	}
	tasks := make([]Task, 0, len(entries))
	settings := map[string]center.Settings{}
	for _, e := range entries {
		task := s.task(e)
		tasks, settings[task.Name] = append(tasks, task), task.Settings
	}
	if err := center.CheckAfter(settings); err != nil {
		s.add(line, "tasks: %s", err)
	}
	slices.SortFunc(tasks, func(a, b Task) int { return strings.Compare(a.Name, b.Name) })
	return tasks
}

func (s taskSource) task(e entry) Task {
	t := Task{Name: e.key}
	path := "tasks." + e.key
	before := len(s.problems)
	if err := roster.ValidTaskType(t.Name); err != nil {
		s.add(e.line, "tasks: %s", err)
	}
	entries := s.mapping(path, e.value)
	s.checkKeys(path, entries, taskKeys)
	for _, e := range entries {
		known := len(s.problems)
		if e.key == "dealer" {
			s.dealer(path+".dealer", e.value, &t)
		} else if name := s.setting(path+".", e, &t.Settings); name != "" {
			t.Given = append(t.Given, name)
		}
		t.Unread = t.Unread || len(s.problems) > known && slices.Contains(readWithDealer, e.key)
	}
	if len(s.problems) > before {
		return t // do not validate settings that lack a value
	}
	if err := t.Settings.Validate(); err != nil {
		for _, line := range escape.Errors(err) {
			s.add(e.line, "%s: %s", path, line)
		}
		of := center.Settings{
			Mode: t.Settings.Mode, Database: t.Settings.Database,
			Queues: t.Settings.Queues, QueueNames: t.Settings.QueueNames,
		}
		t.Unread = of.Validate() != nil
		return t
	}
	s.checkDatabases(path, entries, t.Settings)
	t.Unread = len(s.problems) > before
	if e := find(entries, "dealer"); e != nil {
		s.checkAnswers(path+".dealer", s.mapping(path+".dealer", e.value), t)
	}
	return t
}

// checkDatabases adds a problem if the setting database names a data database that is none.
func (s taskSource) checkDatabases(path string, entries []entry, settings center.Settings) {
	names, _ := settings.WithDefaults().Databases() // they are valid
	for _, name := range names {
		if slices.ContainsFunc(s.data, func(d DataDatabase) bool { return d.Name == name }) {
			continue
		}
		known := make([]string, len(s.data))
		for i, d := range s.data {
			known[i] = d.Name
		}
		has := "data has " + strings.Join(known, ", ")
		if len(known) == 0 {
			has = "there is no data"
		}
		s.add(find(entries, "database").line, "%s.database (%s): names %s, and %s", path, settings.Database, name, has)
		return
	}
}

// setting reads one setting into to. It returns the name of the setting, or "" if there is none of that key.
func (s taskSource) setting(prefix string, e entry, to *center.Settings) (name string) {
	field := fields(to)[e.key]
	switch {
	case e.key == "queues":
		s.queues(prefix+e.key, e.value, to)
	case e.key == "after", e.key == "after_any":
		s.after(prefix+e.key, e.value, e.key == "after_any", to)
		return "after"
	case field == nil:
		return ""
	default:
		before := len(s.problems)
		s.scalar(prefix+e.key, e.value, field)
		if err := to.CheckStated(e.key); err != nil && !isNull(e.value) && before == len(s.problems) {
			s.add(e.value.Line, "%s%s", prefix, err)
		}
	}
	return e.key
}

// queues reads the number of queues or the list of their names.
func (s taskSource) queues(path string, n *yaml.Node, to *center.Settings) {
	if n.Kind != yaml.SequenceNode {
		number, err := strconv.Atoi(n.Value)
		if err != nil || number < 1 {
			s.add(n.Line, "%s (%s): must be a number of at least 1, or a list of names", path, n.Value)
		}
		to.Queues = number
		return
	}
	if len(n.Content) == 0 {
		s.add(n.Line, "%s ([]): must name at least one queue", path)
	}
	for _, name := range n.Content {
		if text, ok := s.text(path, resolve(name)); ok {
			to.QueueNames = append(to.QueueNames, text)
		}
	}
}

// after reads the list of after or after_any: task types, each with or without its rule: "extract: FINISHED" or
// "extract". In quotes the first is a text to YAML, and means the same.
func (s taskSource) after(path string, n *yaml.Node, anyOf bool, to *center.Settings) {
	if isNull(n) {
		return
	}
	if n.Kind != yaml.SequenceNode {
		s.add(n.Line, "%s (%s): must be a list of task types", path, n.Value)
		return
	}
	for _, upstream := range n.Content {
		upstream = resolve(upstream)
		if upstream.Kind != yaml.MappingNode {
			if name, ok := s.text(path, upstream); ok {
				name, rule, _ := strings.Cut(name, ": ")
				to.After = append(to.After, runs.After{Upstream: name, Rule: strings.TrimSpace(rule), Any: anyOf})
			}
			continue
		}
		for _, e := range s.mapping(path, upstream) {
			if rule, ok := s.text(path+"."+e.key, e.value); ok {
				to.After = append(to.After, runs.After{Upstream: e.key, Rule: rule, Any: anyOf})
			}
		}
	}
}

// dealer reads the entry "dealer" into t.
func (s taskSource) dealer(path string, n *yaml.Node, t *Task) {
	entries := s.mapping(path, n)
	s.checkKeys(path, entries, dealerKeys)
	for _, e := range entries {
		switch path := path + "." + e.key; e.key {
		case "sql":
			s.fields(path, e.value, sqlFields(&t.SQL))
		case "command":
			t.Program.Command = s.command(path, e)
		case "env":
			t.Program.Env = s.env(path, e)
		case "http":
			s.service(path, e, &t.Program.HTTP)
		case "answers":
			t.Program.Answers = s.texts(path, e.value)
		}
	}
	if len(t.Program.Command) > 0 && t.Program.HTTP.URL != "" {
		s.add(n.Line, "%s: has both command and http: keep one", path)
	}
	if len(t.Program.Env) > 0 && len(t.Program.Command) == 0 {
		s.add(find(entries, "env").line, "%s.env: needs command, the program that gets the variables", path)
	}
}

// fields reads a mapping into fields by their keys, and returns its entries.
func (s taskSource) fields(path string, n *yaml.Node, fields map[string]any) []entry {
	entries := s.mapping(path, n)
	s.checkKeys(path, entries, slices.Collect(maps.Keys(fields)))
	for _, e := range entries {
		switch field := fields[e.key].(type) {
		case nil:
		case *[]string:
			*field = s.texts(path+"."+e.key, e.value)
		case *[]int:
			*field = s.numbers(path+"."+e.key, e.value)
		case *map[string]string:
			*field = map[string]string{}
			for _, of := range s.mapping(path+"."+e.key, e.value) {
				(*field)[of.key], _ = s.text(path+"."+e.key+"."+of.key, of.value)
			}
		default:
			s.scalar(path+"."+e.key, e.value, field)
		}
	}
	return entries
}

// texts reads one text or a list of texts.
func (s taskSource) texts(path string, n *yaml.Node) (list []string) {
	for _, n := range listOf(n) {
		if text, ok := s.text(path, n); ok {
			list = append(list, text)
		}
	}
	return list
}

// numbers reads one whole number or a list of them.
func (s taskSource) numbers(path string, n *yaml.Node) (list []int) {
	for _, n := range listOf(n) {
		var number int
		s.scalar(path, n, &number)
		list = append(list, number)
	}
	return list
}

// listOf returns the values of a list, or a single value, without those that are empty.
func listOf(n *yaml.Node) (list []*yaml.Node) {
	nodes := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		nodes = n.Content
	}
	for _, n := range nodes {
		if n = resolve(n); !isNull(n) {
			list = append(list, n)
		}
	}
	return list
}

// scalar reads n into to, a pointer to a bool, int, float64, string or Duration.
func (s taskSource) scalar(path string, n *yaml.Node, to any) {
	text, ok := s.text(path, n)
	if !ok || isNull(n) {
		return
	}
	switch to := to.(type) {
	case *string:
		*to = text
	case *int:
		v, err := strconv.Atoi(strings.ReplaceAll(text, "_", ""))
		if err != nil || n.Tag != "!!int" {
			s.add(n.Line, "%s (%s): must be a whole number", path, text)
		}
		*to = v
	case *bool:
		v, err := strconv.ParseBool(text)
		if err != nil || n.Tag != "!!bool" {
			s.add(n.Line, "%s (%s): must be true or false", path, text)
		}
		*to = v
	case *float64:
		v, err := strconv.ParseFloat(strings.ReplaceAll(text, "_", ""), 64)
		if err != nil || n.Tag != "!!int" && n.Tag != "!!float" {
			s.add(n.Line, "%s (%s): must be a number", path, text)
		}
		*to = v
	case *time.Duration:
		v, err := time.ParseDuration(text)
		if err != nil {
			s.add(n.Line, "%s (%s): must be a duration with its unit, such as 500ms, 2s or 5m", path, text)
		}
		*to = v
	}
}
