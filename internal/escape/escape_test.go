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

// Two names that look alike in a list are shown differently.
func TestName(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for in, want := range map[string]string{
		"":              "",
		"f":             "f",
		"f ":            `"f "`,
		" f":            `" f"`,
		"a b":           "a b",
		"a  b":          `"a  b"`,
		"a\u00a0b":      `"a\u00a0b"`,
		"a\tb":          `"a\tb"`,
		"caf\u00e9":     "caf\u00e9",
		"cafe\u0301":    `"cafe\u0301"`,
		"\u0928\u0940":  "\u0928\u0940", // a vowel sign of Devanagari is no accent
		"f\u200b":       `f\u200b`,
		`"f "`:          `"\"f \""`,
		"f\xff":         `f\xff`,
		"north/17":      "north/17",
		`north/\N`:      `north/\N`,
		"\u65e5\u672c ": `"\u65e5\u672c "`,
	} {
		got := Name(in)
		if got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
		if other, twice := seen[got]; twice {
			t.Errorf("%q and %q are both %s", in, other, got)
		}
		seen[got] = in
	}
}
