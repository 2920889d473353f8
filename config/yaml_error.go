package config

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// yamlError returns the line of an error in a text that is not valid YAML, and what is wrong there. The parser counts some
// lines from zero, and names the line where it gave up: where a value continues on a line that is indented more, that is
// the line after the one with the wrong indentation.
func yamlError(text []byte, err error) (line int, what string) {
	if second := secondDocument(0); errors.As(err, &second) {
		return int(second), err.Error()
	}
	what = strings.TrimPrefix(err.Error(), "yaml: ")
	what = regexp.MustCompile(`^line \d+: `).ReplaceAllString(what, "")
	lines := strings.Split(string(text), "\n")
	line = firstBadLine(text)
	above := line - 1
	for above > 0 && strings.TrimSpace(lines[above-1]) == "" {
		above--
	}
	if above == 0 || indent(lines[line-1]) <= indent(lines[above-1]) || !strings.Contains(what, "mapping values are not allowed") {
		return line, what
	}
	what = fmt.Sprintf("line %d is indented more than line %d, which has its value already", line, above)
	if line < len(lines) && strings.TrimSpace(lines[line]) != "" && indent(lines[line]) == indent(lines[line-1]) {
		line = above // the lines after it agree with each other
	}
	return line, what
}

// firstBadLine returns the first line after which no part of the text is valid. An unfinished list is not valid either, so
// that it looks from the end.
func firstBadLine(text []byte) int {
	lines := bytes.SplitAfter(text, []byte("\n"))
	for n, size := len(lines), len(text); n > 1; n-- {
		size -= len(lines[n-1])
		if yaml.Unmarshal(text[:size], &yaml.Node{}) == nil {
			return n
		}
	}
	return 1
}

func indent(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }
