package center

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Parse sets the setting in s to what a text means, which is as in SettingRecord.Text: "2s", "0.5", "any of extract, load
// FINISHED". An empty text means the default. Settings.Validate checks the value. Queues have no such text.
func (row Setting) Parse(s *Settings, text string) (err error) {
	text = strings.TrimSpace(text)
	switch field := row.Field(s).(type) {
	case *string:
		*field = text
	case *int:
		*field, err = parseOr(text, 0, strconv.Atoi)
	case *float64:
		*field, err = parseOr(text, 0, func(text string) (float64, error) { return strconv.ParseFloat(text, 64) })
	case *bool:
		*field, err = parseOr(text, false, strconv.ParseBool)
	case *time.Duration:
		*field, err = parseOr(text, 0, time.ParseDuration)
	case *[]After:
		*field, err = parseAfter(text)
	default:
		return fmt.Errorf("%s (%s) is no single value", row.Name, text)
	}
	if err != nil {
		return fmt.Errorf("%s (%s) must be %s", row.Name, text, kindOfText(row.Field(s)))
	}
	return nil
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
func parseAfter(text string) (after []After, err error) {
	list, anyOf := strings.CutPrefix(text, "any of ")
	if list == "" {
		return nil, nil
	}
	for upstream := range strings.SplitSeq(list, ",") {
		a := After{Any: anyOf}
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
