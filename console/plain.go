package console

import (
	"bytes"
	"regexp"
	"unicode"
)

// plain replaces the characters of a page that a reader does not see, or that turn the direction of the text: a key
// or an error could show as another one. They become the sign for an unknown character. What a form sends back stays
// exact: otherwise a button would name another item, and a text would be stored with other characters.
func plain(page []byte) []byte {
	if bytes.IndexFunc(page, unseen) < 0 {
		return page
	}
	var b bytes.Buffer
	from := 0
	for _, sent := range formValues.FindAllIndex(page, -1) {
		b.Write(replaceUnseen(page[from:sent[0]]))
		b.Write(page[sent[0]:sent[1]])
		from = sent[1]
	}
	b.Write(replaceUnseen(page[from:]))
	return b.Bytes()
}

// formValues finds what forms send back. Only the templates write a quote or a < that is not escaped.
var formValues = regexp.MustCompile(`\bvalue="[^"]*"|<(textarea|option)[^>]*>[^<]*`)

func replaceUnseen(page []byte) []byte {
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
