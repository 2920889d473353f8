package config

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/dutyrota/rota/center"
)

// Assign reads settings of a task type from assignments such as fetch_number=100 or queues=[north, south]. Values are
// written as in a rota.yaml. An empty value means the default. It returns the settings, of which the others are zero, and
// the names of those that were assigned.
func Assign(assignments []string) (to center.Settings, given []string, err error) {
	s := taskSource{&source{}}
	keys := slices.DeleteFunc(slices.Clone(taskKeys), func(key string) bool { return key == "dealer" })
	for i, assignment := range assignments {
		key, value, found := strings.Cut(assignment, "=")
		if !found {
			s.add(i, "%s: must be setting=value", assignment)
			continue
		}
		e := entry{key: key, line: i}
		s.checkKeys("", []entry{e}, keys)
		if e.value, err = assigned(key, value); err != nil {
			s.add(i, "%s (%s): not valid YAML: %s", key, value, strings.TrimPrefix(err.Error(), "yaml: "))
			continue
		}
		e.value.Line = i
		name := s.setting("", e, &to)
		if slices.Contains(given, name) {
			s.add(i, "%s is assigned twice", name)
		}
		given = append(given, name)
	}
	return to, given, s.err()
}

// assigned returns the node of a value. Only lists have a syntax: a text such as "*/5 * * * * ?" would be an alias.
func assigned(key, value string) (*yaml.Node, error) {
	if key == "queues" || key == "after" || key == "after_any" {
		n, err := parse([]byte(value))
		if n == nil && err == nil {
			err = fmt.Errorf("it is empty; no upstreams are []")
		}
		return n, err
	}
	n := &yaml.Node{Kind: yaml.ScalarNode, Value: value}
	n.Tag = n.ShortTag()
	return n, nil
}
