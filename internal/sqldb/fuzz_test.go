package sqldb

import (
	"slices"
	"testing"
)

// Any text in a column of a list is read or refused, and what was read is written as the same list.
func FuzzList(f *testing.F) {
	for _, text := range []string{`["0","1"]`, `["\u0000","\ud800"]`, `{"a":"b"}`, "null", "[1]", "[[", "", "[null]", "2026-11-22 14:50:00.000000", "9999-12-31"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		_ = new(Texts).Scan(text)
		_ = new(Instant).Scan(text)
		var list, again List
		if list.Scan(text) != nil {
			return
		}
		value, err := list.Value()
		if err != nil {
			t.Fatal(err)
		}
		if err := again.Scan(value); err != nil || !slices.Equal(list, again) {
			t.Errorf("%q is %q, and then %q: %v", text, list, again, err)
		}
	})
}
