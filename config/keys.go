package config

import (
	"slices"
	"strings"
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
		s.add(e.line, "%s: unknown key; the known keys are %s", name, strings.Join(slices.Sorted(slices.Values(keys)), ", "))
	}
}
