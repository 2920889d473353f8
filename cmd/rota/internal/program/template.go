package program

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// template is a text with placeholders {{column}}. A value is escaped for its place, so that no value ends the part of
// the text that it stands in.
type template struct {
	parts  []string // one more than names
	names  []string // the columns, in lower case
	places []place
}

// place is where a placeholder stands.
type place int

const (
	inPath place = iota
	inQuery
	inHeader
	inString // between quotes of the body
	inBody   // a value of the body, as the row has it
	asJSON   // a value of the body, by {{json column}} of a text that is JSON
)

var (
	placeholder = regexp.MustCompile(`\{\{\s*(json\s+)?([A-Za-z_]\w*)\s*\}\}`)
	escaped     = regexp.MustCompile(`\\.`)
)

// parseTemplate divides a text that is a path (or a URL), a header or a body.
func parseTemplate(text string, in place) (*template, error) {
	t, start := &template{}, 0
	for _, m := range placeholder.FindAllStringSubmatchIndex(text, -1) {
		at, before := in, text[:m[0]]
		switch {
		case in == inPath && strings.Contains(before, "?"):
			at = inQuery
		case in == inBody && strings.Count(escaped.ReplaceAllString(before, ""), `"`)%2 == 1:
			at = inString
		}
		if m[2] >= 0 && at != inBody {
			return nil, fmt.Errorf("has %s, which must be a whole value of the body", text[m[0]:m[1]])
		} else if m[2] >= 0 {
			at = asJSON
		}
		t.parts, t.names = append(t.parts, text[start:m[0]]), append(t.names, strings.ToLower(text[m[4]:m[5]]))
		t.places, start = append(t.places, at), m[1]
	}
	t.parts = append(t.parts, text[start:])
	if _, rest, ok := strings.Cut(strings.Join(t.parts, " "), "{{"); ok {
		return nil, fmt.Errorf("has a placeholder that is no {{column}}: %.30q", "{{"+rest)
	}
	return t, nil
}

// fill returns the text for a row.
func (t *template) fill(row map[string]json.RawMessage) (string, error) {
	var b strings.Builder
	for i, name := range t.names {
		value, err := t.places[i].escape(row[name])
		if err != nil {
			return "", fmt.Errorf("column %q %w", name, err)
		}
		b.WriteString(t.parts[i])
		b.WriteString(value)
	}
	b.WriteString(t.parts[len(t.names)])
	return b.String(), nil
}

// escape returns the text of a value at a place. NULL is an empty text, and null as a value of the body.
func (p place) escape(value json.RawMessage) (string, error) {
	text := string(value)
	if text == "null" && p != asJSON {
		text = ""
	} else if strings.HasPrefix(text, `"`) {
		_ = json.Unmarshal(value, &text) // the worker has written it
	}
	switch p {
	case inPath:
		if strings.Trim(text, ".") == "" {
			return "", fmt.Errorf("(%q) would lead to another path", text)
		}
		return url.PathEscape(text), nil
	case inQuery:
		return url.QueryEscape(text), nil
	case inHeader:
		return text, checkHeader(text)
	case inString:
		quoted, err := json.Marshal(text)
		return string(quoted[1 : len(quoted)-1]), err
	case asJSON:
		if !json.Valid([]byte(text)) {
			return "", errors.New("is not JSON")
		}
		return text, nil
	}
	return string(value), nil
}

// checkHeader returns an error for a text that is no value of a header.
func checkHeader(text string) error {
	if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
		return errors.New("has a control character, such as the end of a line, which no header may have")
	}
	return nil
}
