package sqldb

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
)

// Params says what happens to each parameter of the URLs of a driver, by name. A parameter that is missing is refused:
// drivers hand names that they do not know to the server, as settings of the session.
type Params map[string]Param

// Param says what happens to one parameter. Pass, Only, Force and Refuse return one.
type Param struct {
	fate  fate
	rule  string            // what a value must be, or the reason
	valid func(string) bool // nil: any value
}

type fate int

const (
	pass fate = iota
	force
	refuse
)

// Pass hands the parameter to the driver.
func Pass() Param { return Param{} }

// Only hands the parameter to the driver if its value is valid. rule says what it must be, and why.
func Only(valid func(string) bool, rule string) Param { return Param{valid: valid, rule: rule} }

// Force ignores the parameter: the package sets it to the value, for the reason.
func Force(value, reason string) Param {
	return Param{fate: force, rule: fmt.Sprintf("is forced to %s: %s", value, reason)}
}

// Refuse refuses the parameter for the reason.
func Refuse(reason string) Param { return Param{fate: refuse, rule: "is refused: " + reason} }

// String returns what happens to the parameter and why.
func (p Param) String() string {
	if p.rule == "" {
		return "is passed on"
	}
	return p.rule
}

// OneOf returns a test for Only.
func OneOf(values ...string) func(string) bool {
	return func(v string) bool { return slices.Contains(values, v) }
}

// paramName is the form of a name that an error may print. Any other name may be a part of a password.
var paramName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.]*$`)

// Check returns the parameters for the driver. The error names a parameter, its value and the rule, in one line. The
// value of an unknown parameter is not printed: it may be a password.
func (p Params) Check(query url.Values) (url.Values, error) {
	passed := url.Values{}
	names := make([]string, 0, len(query))
	for name := range query {
		names = append(names, name)
	}
	slices.Sort(names) // one URL has one error
	for _, name := range names {
		param, known := p[name]
		values := query[name]
		switch {
		case !known && !paramName.MatchString(name):
			return nil, URLError("a parameter behind the question mark has no valid name")
		case !known:
			return nil, URLError("parameter %s is refused: its effect on the roster is not known", name)
		case len(values) > 1:
			return nil, URLError("parameter %s must be given once, not %d times", name, len(values))
		case param.fate == refuse, param.valid != nil && !param.valid(values[0]):
			return nil, URLError("parameter %s (%q) %s", name, values[0], param.rule)
		case param.fate == pass:
			passed.Set(name, values[0])
		}
	}
	return passed, nil
}

// URLError returns an error about a database URL.
func URLError(format string, args ...any) error {
	return fmt.Errorf("database URL: "+format, args...)
}
