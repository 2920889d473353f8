package console

import (
	"bytes"
	"unicode"
)

// plain replaces the characters of a page that a reader does not see, or that turn the direction of the text: a key
// or an error could show as another one. They become the sign for an unknown character.
func plain(page []byte) []byte {
	if bytes.IndexFunc(page, unseen) < 0 {
		return page
	}
	return bytes.Map(func(r rune) rune {
		if unseen(r) {
			return unicode.ReplacementChar
		}
		return r
	}, page)
}

// unseen reports whether a character is a control or format character, such as those of Unicode's bidirectional text.
// Characters that only space the HTML do not count.
func unseen(r rune) bool {
	return r != '\n' && r != '\t' && r != '\r' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}
