package config

import (
	"bytes"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/runs"
)

// Format returns a rota.yaml that has all settings of a task type, without its dealer and without the database. Load
// reads the same settings from it.
func Format(taskType string, s center.Settings) ([]byte, error) {
	settings := &yaml.Node{Kind: yaml.MappingNode}
	for _, row := range center.SettingTable() {
		key, value := formatted(row.Name, row.Field(&s))
		if key == "" {
			continue
		}
		var n yaml.Node
		if err := n.Encode(value); err != nil {
			return nil, err
		}
		settings.Content = append(settings.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: key}, &n)
	}
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	err := e.Encode(map[string]map[string]*yaml.Node{"tasks": {taskType: settings}})
	return b.Bytes(), err
}

// formatted returns the key and the value of the setting that field points to. The key is empty if the file leaves it
// out: queues are either a number or names.
func formatted(name string, field any) (key string, value any) {
	switch v := field.(type) {
	case *time.Duration:
		return name, v.String()
	case *[]runs.After:
		return formattedAfter(*v)
	case *[]string:
		if len(*v) == 0 {
			return "", nil
		}
	case *int:
		if name == "queues" && *v == 0 {
			return "", nil
		}
	}
	return name, field
}

// formattedAfter returns the list of upstreams, each with its rule.
func formattedAfter(after []runs.After) (key string, value any) {
	key, list := "after", []map[string]string{}
	for _, a := range after {
		if a.Any {
			key = "after_any"
		}
		list = append(list, map[string]string{a.Upstream: a.Rule})
	}
	return key, list
}
