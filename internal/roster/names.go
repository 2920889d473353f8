package roster

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ValidName returns an error for a name that an operator cannot read in a SELECT or type into a command. what begins
// the error; most is the maximum length in bytes.
func ValidName(what, name string, most int) error {
	switch {
	case name == "":
		return fmt.Errorf("%s must not be empty", what)
	case len(name) > most:
		return fmt.Errorf("%s (%q) must have at most %d bytes, not %d", what, name, most, len(name))
	case !utf8.ValidString(name):
		return fmt.Errorf("%s (%q) must be UTF-8", what, name)
	case strings.ContainsFunc(name, unprintable), strings.Contains(" "+name+" ", "  "):
		return fmt.Errorf("%s (%q) must be printable, without white space around it", what, name)
	}
	return nil
}

// unprintable reports whether a character is not visible: control, format and bidi characters, which could make a name
// look like another, and all white space but the usual space.
func unprintable(r rune) bool { return !unicode.IsPrint(r) }

// ServerName returns the short name of a server: host:pid, which is its uuid without the random end. The servers of a
// process that serves several task types share the name.
func ServerName(uuid string) string {
	if at := strings.LastIndexByte(uuid, ':'); at > 0 && len(uuid)-at == len(":12345678") {
		return uuid[:at]
	}
	return uuid
}
