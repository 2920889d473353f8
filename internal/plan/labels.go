package plan

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// HostLabel is the label of each server that has the name of its host.
const HostLabel = "host"

// MaxLabels is how many labels a server may have.
const MaxLabels = 16

var (
	labelKey   = regexp.MustCompile(`^[a-z0-9]([-a-z0-9._/]{0,61}[a-z0-9])?$`)
	labelValue = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9._]{0,61}[A-Za-z0-9])?$`)
)

// Labels say what a server has: its zone, its disk.
type Labels map[string]string

// ParseLabels parses labels such as "disk=ssd,zone=b".
func ParseLabels(text string) (Labels, error) {
	var labels Labels
	for _, part := range parts(text, ",") {
		key, value, ok := strings.Cut(part, "=")
		if _, there := labels[key]; !ok || there {
			return nil, errors.New("must be a list such as disk=ssd,zone=b, each label once")
		}
		if labels == nil {
			labels = Labels{}
		}
		labels[key] = value
	}
	return labels, labels.Check()
}

// UnmarshalText implements encoding.TextUnmarshaler. A text that is no list of labels is read as none.
func (l *Labels) UnmarshalText(text []byte) (err error) {
	*l, err = ParseLabels(string(text))
	return err
}

// Check returns an error if a label breaks its rule.
func (l Labels) Check() error {
	if len(l) > MaxLabels {
		return fmt.Errorf("labels: %d are more than %d", len(l), MaxLabels)
	}
	for _, key := range slices.Sorted(maps.Keys(l)) {
		switch {
		case key == HostLabel:
			return fmt.Errorf("label %s: each server has it already, with the name of its host", HostLabel)
		case !labelKey.MatchString(key):
			return fmt.Errorf("label (%.60q) must be a name of a to z, digits and -._/ with at most 63 characters", key)
		case !labelValue.MatchString(l[key]):
			return fmt.Errorf("label %s (%.60q) must have a value of letters, digits and -._ with at most 63 characters",
				key, l[key])
		}
	}
	return nil
}

// String returns the text that ParseLabels parses.
func (l Labels) String() string {
	list := make([]string, 0, len(l))
	for _, key := range slices.Sorted(maps.Keys(l)) {
		list = append(list, key+"="+l[key])
	}
	return strings.Join(list, ",")
}

// label returns the value of a label of the server, "" if it has none.
func (s Server) label(key string) string {
	if key == HostLabel {
		return s.Host
	}
	return s.Labels[key]
}

// CheckLabelKey returns an error if the name of a label breaks its rule. "" is no label.
func CheckLabelKey(key string) error {
	if key != "" && !labelKey.MatchString(key) {
		return errors.New("must be the name of a label, such as zone")
	}
	return nil
}

// Selector says which labels a server must have (P14). The zero value demands none.
type Selector struct {
	terms []term
	text  string
	never bool // no server matches
}

// String returns the text that ParseSelector has parsed.
func (s Selector) String() string { return s.text }

// all reports whether the selector demands nothing.
func (s Selector) all() bool { return len(s.terms) == 0 && !s.never }

// term demands that a label has one of the values.
type term struct {
	key    string
	values []string
}

// ParseSelector parses a list such as "disk=ssd|nvme,zone=b": a server must have all the labels, each with one of the
// values. The label host is the name of its host. With an error it returns a selector that no server matches: no server
// gets a queue by a rule that cannot be read.
func ParseSelector(text string) (Selector, error) {
	s := Selector{text: text}
	for _, part := range parts(text, ",") {
		key, values, ok := strings.Cut(part, "=")
		t := term{key, parts(values, "|")}
		invalid := func(v string) bool { return !labelValue.MatchString(v) }
		if !ok || !labelKey.MatchString(key) || len(t.values) == 0 || slices.ContainsFunc(t.values, invalid) {
			err := errors.New("must be a list of labels such as zone=b or disk=ssd|nvme,zone=b")
			return Selector{text: text, never: true}, err
		}
		s.terms = append(s.terms, t)
	}
	return s, nil
}

// UnmarshalText implements encoding.TextUnmarshaler. No server matches a text that is no selector.
func (s *Selector) UnmarshalText(text []byte) (err error) {
	*s, err = ParseSelector(string(text))
	return err
}

// parts returns the parts of a list, without the spaces around them. The empty list has none.
func parts(text, separator string) (list []string) {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	for part := range strings.SplitSeq(text, separator) {
		list = append(list, strings.TrimSpace(part))
	}
	return list
}

// Matches reports whether the server has the labels.
func (s Selector) Matches(server Server) bool {
	lacks := func(t term) bool { return !slices.Contains(t.values, server.label(t.key)) }
	return !s.never && !slices.ContainsFunc(s.terms, lacks)
}

// zones returns the zone of each server: the number of its value of the label. The values are numbered in the order of
// their oldest servers. Without a label, all servers are in zone 0.
func zones(servers []Server, label string) []int {
	list := make([]int, len(servers))
	if label == "" {
		return list
	}
	numbers := map[string]int{}
	for i, s := range servers {
		value := s.label(label)
		if _, there := numbers[value]; !there {
			numbers[value] = len(numbers)
		}
		list[i] = numbers[value]
	}
	return list
}
