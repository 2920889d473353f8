package center

import (
	"fmt"
	"hash/crc32"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/runs"
)

// SettingRecord is one setting of a task type.
type SettingRecord struct {
	Column string // in schedule_task_type; the name if the setting is kept in another table, as are cron, every and after
	Name   string // in rota.yaml
	Value  any    // the value of the column: int64, float64, bool or string
	Text   string // the text in rota.yaml
}

// Records lists the settings except the queues, zeros replaced by their defaults.
func (s Settings) Records() (list []SettingRecord) {
	s = s.WithDefaults()
	for _, row := range settingTable {
		switch {
		case row.Name == "queues":
		case row.Column == "":
			text := textOf(row.Field(&s))
			list = append(list, SettingRecord{Column: row.Name, Name: row.Name, Value: text, Text: text})
		default:
			r := SettingRecord{Column: row.Column, Name: row.Name, Value: row.Value(s)}
			r.Text = fmt.Sprint(reflect.ValueOf(row.Field(&s)).Elem().Interface())
			list = append(list, r)
		}
	}
	return list
}

// Stated returns the names, in rota.yaml, of the settings that are not zero in s: code states those.
func (s Settings) Stated() (names []string) {
	for _, row := range settingTable {
		if !reflect.ValueOf(row.Field(&s)).Elem().IsZero() {
			names = append(names, row.Name)
		}
	}
	return names
}

// Given returns the settings that are not zero in s, as text, by their names in rota.yaml.
func (s Settings) Given() map[string]string { return s.Texts(s.Stated()) }

// Texts returns the named settings as text, by their names in rota.yaml. A zero means its default.
func (s Settings) Texts(names []string) map[string]string {
	s = s.WithDefaults()
	texts := map[string]string{}
	for _, row := range settingTable {
		text := settingText(row.Field(&s))
		if slices.Contains(names, row.Name) && (text != notSet || texts[row.Name] == "") { // queues has two rows
			texts[row.Name] = text
		}
	}
	return texts
}

// DiffersFrom lists the given settings, as Given returns them, for which s has another value.
func (s Settings) DiffersFrom(given map[string]string) (diffs []runs.Difference) {
	stored := s.Texts(slices.Collect(maps.Keys(given)))
	seen := map[string]bool{}
	for _, row := range settingTable {
		mine, ok := given[row.Name]
		theirs := stored[row.Name]
		if ok && mine != theirs && !seen[row.Name] {
			diffs = append(diffs, runs.Difference{Name: row.Name, Given: mine, Row: theirs})
		}
		seen[row.Name] = true
	}
	return diffs
}

// Assignments returns the given values of differences as words of "rota task set", such as queues=12. It returns none
// if a value is too long, so that the difference has only its beginning.
func Assignments(diffs []runs.Difference) (words []string) {
	for _, d := range diffs {
		if shortened.MatchString(d.Given) {
			return nil
		}
		if d.Given == notSet {
			d.Given = "" // the default
		}
		words = append(words, d.Name+"="+d.Given)
	}
	return words
}

// shortened matches what settingText appends to a text that it cuts.
var shortened = regexp.MustCompile(` \(\d+ bytes, [0-9a-f]{8}\)$`)

// notSet stands for a setting without a default that is empty. A bool or a number is false or 0.
const notSet = "not set"

// settingText returns the setting that p points to, for display and comparison. It cuts a text that is too long, such
// as the names of many queues, and appends a checksum of the whole.
func settingText(p any) string {
	switch value := reflect.ValueOf(p).Elem(); {
	case !value.IsZero():
	case slices.Contains([]reflect.Kind{reflect.Bool, reflect.Int, reflect.Float64}, value.Kind()):
		return fmt.Sprint(value)
	default:
		return notSet
	}
	text := textOf(p)
	if short := sqldb.Clean(text); short != text {
		return fmt.Sprintf("%s (%d bytes, %08x)", short, len(text), crc32.ChecksumIEEE([]byte(text)))
	}
	return text
}

// textOf returns the text of the setting that p points to. Queues and upstreams are sorted, since their order does not
// matter. The text of a setting that is not set is empty.
func textOf(p any) string {
	switch p := p.(type) {
	case *time.Duration:
		if *p != 0 {
			return p.String()
		}
		return ""
	case *[]string:
		return "[" + strings.Join(slices.Sorted(slices.Values(*p)), ", ") + "]"
	case *[]runs.After:
		return afterText(*p)
	}
	return fmt.Sprint(reflect.ValueOf(p).Elem().Interface())
}

func afterText(after []runs.After) string {
	list := make([]string, len(after))
	for i, a := range after {
		list[i] = a.String()
	}
	slices.Sort(list)
	text := strings.Join(list, ", ")
	if len(after) > 1 && after[0].Any {
		return "any of " + text
	}
	return text
}
