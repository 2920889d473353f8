package cli

import (
	"slices"
	"strings"
	"testing"
	"time"
)

type entry struct {
	host, name, text string
	age              *float64
	at               time.Time
}

func entryRow(e entry) Row {
	return Row{
		Text("HOST", e.host).Once(), UUID("NAME", e.name), Age("AGE", e.age), Relative("AT", time.Unix(100, 0), e.at).Drop(1),
		Long("TEXT", e.text),
	}
}

var entries = NewTable([]entry{
	{"a", "q10:1:0000000a", "Größe", new(3600.0), time.Unix(90, 0)},
	{"a", "q2:1:0000000b", strings.Repeat("long ", 30), new(7.0), time.Unix(120, 0)},
	{"b", "q3:1:0000000c", "", nil, time.Time{}},
}, entryRow)

// A part of a table has the columns of the whole, and names a group in its first row.
func TestPart(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		width int
		rows  []int
		want  []string
	}{
		{46, []int{0, 1, 2}, []string{
			" HOST  NAME    AGE       AT  TEXT",
			" a     q10:1    1h  10s ago  Größe",
			"       q2:1   7.0s   in 20s  long long long …",
			" b     q3:1      -        -",
		}},
		{46, []int{2, 0}, []string{
			" HOST  NAME    AGE       AT  TEXT",
			" b     q3:1      -        -",
			" a     q10:1    1h  10s ago  Größe",
		}},
		{40, []int{1}, []string{" HOST  NAME    AGE  TEXT", " a     q2:1   7.0s  long long long lon…"}},
		{40, nil, []string{" HOST  NAME    AGE  TEXT"}},
	} {
		p := entries.Part(Screen{Width: test.width}, test.rows)
		if got := append([]string{p.Head}, p.Lines...); !slices.Equal(got, test.want) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
		}
	}
}

// A column in which all rows have the same text gives way to others, and a column with different texts does not.
func TestPartWithoutWhatIsTheSame(t *testing.T) {
	t.Parallel()
	row := func(e entry) Row {
		return Row{Text("HOST", e.host).DropSame(3), Text("NAME", e.name).Drop(2), Text("TEXT", e.text)}
	}
	for want, entries := range map[string][]entry{
		" NAME  TEXT": {{host: "a", name: "b", text: "c"}, {host: "a", name: "b", text: "d"}},
		" HOST  TEXT": {{host: "a", name: "b", text: "c"}, {host: "b", name: "b", text: "c"}},
	} {
		if p := NewTable(entries, row).Part(Screen{Width: 12}, []int{0, 1}); p.Head != want {
			t.Errorf("%v: the head is %q, want %q", entries, p.Head, want)
		}
	}
}

// Rows compare by what a column means: 7 s before an hour, q2 before q10, nothing before something.
func TestRowsAreCompared(t *testing.T) {
	t.Parallel()
	for column, want := range map[string][]int{"NAME": {1, 2, 0}, "AGE": {2, 1, 0}, "AT": {2, 0, 1}, "TEXT": {2, 0, 1}, "none": {0, 1, 2}} {
		order := []int{0, 1, 2}
		slices.SortStableFunc(order, func(a, b int) int { return entries.Compare(column, a, b) })
		if !slices.Equal(order, want) {
			t.Errorf("by %s: %v, want %v", column, order, want)
		}
	}
}

// Has finds words whatever their case, in all columns except figures, and also in a column that the screen leaves out.
func TestRowsHaveWords(t *testing.T) {
	t.Parallel()
	for words, want := range map[string][]int{"": {0, 1, 2}, "long": {1}, "größe a": {0}, "0000000C": {2}, "a long q2": {1}, "a q3": nil, "zz": nil, "ago": nil} {
		var found []int
		for i := range entries.Len() {
			if entries.Has(i, strings.Fields(strings.ToLower(words))) {
				found = append(found, i)
			}
		}
		if !slices.Equal(found, want) {
			t.Errorf("%q is in the rows %v, want %v", words, found, want)
		}
	}
}
