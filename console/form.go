package console

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// formField is a field of a form.
type formField struct {
	Name, Label, Value, Help string
	Placeholder              string
	Choices                  []string // the field is a list of them
	Long                     bool     // the text has several lines
	Required                 bool
	Fixed                    bool // the value cannot be changed
}

// formReader reads the values of a form. It keeps the first error of each field.
type formReader struct {
	form url.Values
	errs []error
}

// text returns a value without space around it.
func (f *formReader) text(name string) string { return strings.TrimSpace(f.form.Get(name)) }

func (f *formReader) add(name, value, rule string) {
	f.errs = append(f.errs, fmt.Errorf("%s (%s) must be %s", name, value, rule))
}

// number returns a whole number; 0 without a value.
func (f *formReader) number(name string) int64 {
	text := f.text(name)
	if text == "" {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		f.add(name, text, "a whole number")
	}
	return n
}

// duration returns a duration; 0 without a value.
func (f *formReader) duration(name string) time.Duration {
	text := f.text(name)
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		f.add(name, text, "a duration, such as 90s, 10m or 24h")
	}
	return d
}

// time returns a time; the zero time without a value.
func (f *formReader) time(name string) time.Time {
	text := f.text(name)
	if text == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		f.add(name, text, "a time with its offset, such as 2026-12-01T02:00:00+01:00")
	}
	return t
}
