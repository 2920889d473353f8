package roster

import "testing"

// A name that an operator reads is the name that is stored: nothing in it is invisible, and nothing reorders the line.
func TestValidName(t *testing.T) {
	t.Parallel()
	for name, valid := range map[string]bool{
		"settle": true, "süd nord": true, "订单": true, "a$b": true, "é": true,
		"": false, " a": false, "a ": false, "a  b": false, "a\tb": false, "a\x00": false, "a\x7f": false,
		"12345678901": false,
		"a\xff":       false, // not UTF-8
		"a\u0085b":    false, // a control character
		"a\u00a0b":    false, // a space that looks like another
		"a\u200bb":    false, // a space without width
		"a\u202eb":    false, // the rest of the line runs from right to left
		"a\u2066b":    false, // isolates what follows
		"\ufeffab":    false, // a byte order mark
		"a\u2028b":    false, // a line separator
		"a\U000e0041": false, // a tag
	} {
		if err := ValidName("queue", name, 10); (err == nil) != valid {
			t.Errorf("%+q: error %v, want valid: %t", name, err, valid)
		}
	}
}

// A command line that the doctor prints has the name of a task type or a trigger as an argument.
func TestValidArgument(t *testing.T) {
	t.Parallel()
	for name, valid := range map[string]bool{"settle": true, "a-b": true, "": false, " a": false, "-": false, "-x": false, "--all": false} {
		if err := ValidArgument("trigger", name, 10); (err == nil) != valid {
			t.Errorf("%+q: error %v, want valid: %t", name, err, valid)
		}
	}
}
