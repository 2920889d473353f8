package sqldealer

import (
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var dollarTag = regexp.MustCompile(`^\$([\pL_][\pL\d_]*)?\$`)

// literal returns the string, quoted name or comment that starts at text[i], or
// "". An unclosed literal extends to the end.
func literal(text string, i int, sy syntax) string {
	rest := text[i:]
	switch {
	case lineComment(rest, sy):
		return through(rest, 0, "\n")
	case strings.HasPrefix(rest, "/*"):
		return blockComment(rest, sy.nestedComments)
	case rest[0] == '\'', rest[0] == '"', rest[0] == '`' && sy.backquotes:
		return quoted(rest, backslashEscapes(text, i, sy))
	case rest[0] == '$' && sy.dollarQuotes:
		if tag := dollarTag.FindString(rest); tag != "" && !wordBefore(text, i) {
			return through(rest, len(tag), tag)
		}
	}
	return ""
}

func isComment(literal string) bool {
	return strings.HasPrefix(literal, "--") || strings.HasPrefix(literal, "/*") || literal[0] == '#'
}

func lineComment(s string, sy syntax) bool {
	dashes := strings.HasPrefix(s, "--")
	if !sy.hashComments {
		return dashes
	}
	return dashes && (len(s) == 2 || s[2] <= ' ') || s[0] == '#'
}

func blockComment(s string, nests bool) string {
	depth := 0
	for i := 0; i+1 < len(s); i++ {
		switch s[i : i+2] {
		case "/*":
			if depth == 0 || nests {
				depth++
			}
			i++
		case "*/":
			if depth--; depth == 0 {
				return s[:i+2]
			}
			i++
		}
	}
	return s
}

// quoted returns s up to the first quote that is neither doubled nor escaped.
func quoted(s string, escapes bool) string {
	for i := 1; i < len(s); i++ {
		switch {
		case escapes && s[i] == '\\':
			i++
		case s[i] != s[0]:
		case i+1 < len(s) && s[i+1] == s[0]:
			i++
		default:
			return s[:i+1]
		}
	}
	return s
}

// backslashEscapes reports whether a backslash escapes in the string that starts at text[i].
func backslashEscapes(text string, i int, sy syntax) bool {
	if sy.backslashes {
		return text[i] != '`'
	}
	return sy.backslashesAfter != 0 && text[i] == '\'' && i > 0 && text[i-1]|0x20 == sy.backslashesAfter &&
		!wordBefore(text, i-1)
}

// wordBefore reports whether text[i] continues a name or a number.
func wordBefore(text string, i int) bool {
	return i > 0 && (isWord(text[i-1]) || text[i-1] == '$')
}

func isWord(c byte) bool {
	return c == '_' || c >= 0x80 || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

// through returns s up to and including the first end at or after from.
func through(s string, from int, end string) string {
	if i := strings.Index(s[from:], end); i >= 0 {
		return s[:from+i+len(end)]
	}
	return s
}

// The marks of a stored text that is not the value itself.
const (
	bytesMark = `\x` // hexadecimal digits follow
	textMark  = `\s` // the text follows; it is empty or starts with a backslash
	nullMark  = `\N` // NULL; the row has no key
)

// encode returns the text under which a value is stored: as a key, a position or a
// cursor. decode turns it back into the same value. It is never empty.
func encode(v any) string {
	switch v := v.(type) {
	case nil:
		return nullMark
	case string:
		if v == "" || v[0] == '\\' {
			return textMark + v
		}
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	case []byte:
		return bytesMark + hex.EncodeToString(v)
	case time.Time:
		return v.UTC().Format(time.RFC3339Nano) // PostgreSQL returns the zone of the session, which may change
	default:
		return fmt.Sprint(v)
	}
}

// decode returns the value to bind for a stored text. A text that encode does not
// write, such as a start value of the file, is itself.
func decode(text string, sy syntax) any {
	if text == nullMark {
		return nil
	}
	if rest, ok := strings.CutPrefix(text, textMark); ok {
		return rest
	}
	if digits, ok := strings.CutPrefix(text, bytesMark); ok {
		if b, err := hex.DecodeString(digits); err == nil {
			return b
		}
	}
	if n, ok := wholeNumber(text); ok && sy.dynamicTypes {
		return n
	}
	return text
}

// keySeparator stands between the columns of a key. In a column's text it is escaped with percent signs, as in a URL,
// so that ("a", "b/c") and ("a/b", "c") differ. A key of one column is its text, unescaped.
const keySeparator = "/"

var (
	escapeColumn   = strings.NewReplacer("%", "%25", keySeparator, "%2F")
	unescapeColumn = strings.NewReplacer("%2F", keySeparator, "%25", "%")
)

// encodeKey returns the text under which a key is stored. splitKey undoes it.
func encodeKey(values []any) string {
	if len(values) == 1 {
		return encode(values[0])
	}
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = escapeColumn.Replace(encode(v))
	}
	return strings.Join(texts, keySeparator)
}

// splitKey returns the texts of the columns of a key.
func splitKey(text string, columns int) []string {
	if columns == 1 {
		return []string{text}
	}
	texts := strings.Split(text, keySeparator)
	for i, t := range texts {
		texts[i] = unescapeColumn.Replace(t)
	}
	return texts
}

// wholeNumber returns the number that a text is, if encode writes it like that.
func wholeNumber(text string) (int64, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && strconv.FormatInt(n, 10) == text
}
