package config

import (
	"slices"
	"strings"

	"github.com/dutyrota/rota/internal/nearest"
)

// checkKeys adds a problem for each entry whose key is not in keys.
func (s *source) checkKeys(path string, entries []entry, keys []string) {
	for _, e := range entries {
		if slices.Contains(keys, e.key) {
			continue
		}
		name := e.key
		if path != "" {
			name = path + "." + e.key
		}
		if near := nearest.To(e.key, keys); near != "" {
			s.add(e.line, "%s: unknown key; did you mean %s?", name, near)
			continue
		}
		s.add(e.line, "%s: unknown key; the known keys are %s", name, strings.Join(slices.Sorted(slices.Values(keys)), ", "))
	}
}
