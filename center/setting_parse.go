package center

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dutyrota/rota/internal/human"
	"github.com/dutyrota/rota/runs"
)

// Set sets the named setting to what a text means, which is as in SettingRecord.Text: "2s", "0.5", "any of extract,
// load FINISHED". Lists may be as in rota.yaml, too: "[extract, load: FINISHED]". An empty text means the default, and
// a 0 that would mean it is an error. Settings.Validate checks the value.
func (s *Settings) Set(name, text string) (err error) {
	given, text := text, strings.TrimSpace(text)
	if name == "queues" {
		return s.setQueues(text)
	}
	i := slices.IndexFunc(settingTable, func(row Setting) bool { return row.Name == name })
	if i < 0 {
		return fmt.Errorf("%s: %s", name, human.Unknown("setting", name, settingNames()))
	}
	switch field := settingTable[i].Field(s).(type) {
	case *string:
		*field = text
		if field == &s.TaskParameter {
			*field = given // dealers get it as it is
		}
	case *int:
		*field, err = parseOr(text, 0, strconv.Atoi)
	case *float64:
		*field, err = parseOr(text, 0, func(text string) (float64, error) { return strconv.ParseFloat(text, 64) })
	case *bool:
		*field, err = parseOr(text, false, strconv.ParseBool)
	case *time.Duration:
		*field, err = parseOr(text, 0, time.ParseDuration)
	case *[]runs.After:
		*field, err = parseAfter(text)
	}
	if err != nil {
		return fmt.Errorf("%s (%s) must be %s", name, text, kindOfText(settingTable[i].Field(s)))
	}
	if text == "" {
		return nil
	}
	return s.CheckStated(name)
}

func settingNames() (names []string) {
	for _, row := range settingTable {
		names = append(names, row.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// setQueues reads a number of queues, or their names.
func (s *Settings) setQueues(text string) (err error) {
	s.QueueNames = nil
	if s.Queues, err = parseOr(text, 0, strconv.Atoi); err == nil {
		return nil
	}
	list, ok := unbracket(text)
	if !ok {
		return fmt.Errorf("queues (%s) must be a number, or a list of names", text)
	}
	for more := true; more; {
		var name string
		name, list, more = cutName(list)
		s.QueueNames = append(s.QueueNames, name)
	}
	return nil
}

// cutName returns the first name of a list, what is behind its comma, and whether there is one. A name in quotes may
// have commas.
func cutName(list string) (name, rest string, more bool) {
	list = strings.TrimSpace(list)
	if quoted, err := strconv.QuotedPrefix(list); err == nil && list[0] == '"' {
		between, rest, more := strings.Cut(list[len(quoted):], ",")
		if name, err := strconv.Unquote(quoted); err == nil && strings.TrimSpace(between) == "" {
			return name, rest, more
		}
	}
	name, rest, more = strings.Cut(list, ",")
	return strings.TrimSpace(name), rest, more
}

// QueuesText returns the number of queues, or the list of their names. A name that would be read as another one, or as
// several, is in quotes.
func (s Settings) QueuesText() string {
	if len(s.QueueNames) == 0 {
		return strconv.Itoa(s.Queues)
	}
	names := slices.Clone(s.QueueNames)
	for i, name := range names {
		if strings.Contains(name, ",") || strings.HasPrefix(name, `"`) {
			names[i] = strconv.Quote(name)
		}
	}
	return "[" + strings.Join(names, ", ") + "]"
}

// unbracket returns a list without its brackets, which it need not have. It returns false if only one of them is there.
func unbracket(list string) (string, bool) {
	inner, opened := strings.CutPrefix(list, "[")
	inner, closed := strings.CutSuffix(inner, "]")
	return inner, opened == closed
}

// parseOr returns the value of an empty text, or the result of parse.
func parseOr[T any](text string, empty T, parse func(string) (T, error)) (T, error) {
	if text == "" {
		return empty, nil
	}
	return parse(text)
}

func kindOfText(field any) string {
	switch field.(type) {
	case *int:
		return "a whole number"
	case *float64:
		return "a number"
	case *bool:
		return "true or false"
	case *time.Duration:
		return "a duration, such as 500ms, 2s or 24h"
	}
	return `a list of task types, such as "extract, load FINISHED"`
}

// parseAfter reads what afterText writes.
func parseAfter(text string) (after []runs.After, err error) {
	list, anyOf := strings.CutPrefix(text, "any of ")
	list, ok := unbracket(strings.ReplaceAll(list, ":", " "))
	if !ok {
		return nil, errors.New("a bracket is missing")
	}
	if list == "" {
		return nil, nil
	}
	for upstream := range strings.SplitSeq(list, ",") {
		a := runs.After{Any: anyOf}
		switch words := strings.Fields(upstream); len(words) {
		case 2:
			a.Upstream, a.Rule = words[0], words[1]
		case 1:
			a.Upstream = words[0]
		default:
			return nil, fmt.Errorf("%q names no task type", upstream)
		}
		after = append(after, a)
	}
	return after, nil
}
