package escape

import "testing"

func TestText(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                                 "",
		`Größe "1" \n 日本 😀 █├─`:            `Größe "1" \n 日本 😀 █├─`,
		"\x1b]0;title\x07":                 `\x1b]0;title\a`,
		"a\r\n\tb\x7f":                     `a\r\n\tb\x7f`,
		"\u009b2J":                         `\u009b2J`,
		"\x9b2J":                           `\x9b2J`,
		"\u202eabc\u2066":                  `\u202eabc\u2066`,
		"zero\u200bwidth\ufeff":            `zero\u200bwidth\ufeff`,
		"\u2028\u2029":                     `\u2028\u2029`,
		"\U000e0041":                       `\U000e0041`,
		"the replacement character \ufffd": "the replacement character \ufffd",
	} {
		if got := Text(in); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
		if Safe(in) != (in == want) {
			t.Errorf("%q: Safe is %t", in, Safe(in))
		}
	}
	if got := Lines("a\nb\x1b\r\n"); got != `a`+"\n"+`b\x1b\r`+"\n" {
		t.Errorf("%q", got)
	}
}
