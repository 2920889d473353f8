package sqldealer

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The marks of a stored text that is not the value itself.
const (
	bytesMark = `\x` // hexadecimal digits follow
	textMark  = `\s` // the text follows; it is empty or starts with a backslash
)

// encode returns the text under which a value is stored: as a key, a position or a
// cursor. decode turns it back into the same value. It is never empty.
func encode(v any) string {
	switch v := v.(type) {
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
		return v.Format(time.RFC3339Nano)
	default:
		return fmt.Sprint(v)
	}
}

// decode returns the value to bind for a stored text. A text that encode does not
// write, such as a start value of the file, is itself.
func decode(text string, sy syntax) any {
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
