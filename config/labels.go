package config

import (
	"strings"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"
	"go.yaml.in/yaml/v3"

	"github.com/dutyrota/rota/center"
)

// labelList returns a mapping of labels as the list that a flag would have: disk=ssd,zone=b.
func (s *source) labelList(n *yaml.Node) string {
	var list []string
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i].Value
		if value, ok := s.text("labels."+key, n.Content[i+1]); ok {
			list = append(list, key+"="+value)
		}
	}
	return strings.Join(list, ",")
}

// labels returns the labels of the process.
func (s *source) labels(v *viper.Viper, flags *pflag.FlagSet) map[string]string {
	text := v.GetString("labels")
	labels, err := center.ParseLabels(text)
	if err != nil {
		s.addScalarProblem(flags, "labels", text, err.Error())
		return nil
	}
	return labels
}
