// Package human writes numbers, durations and moments in texts for people.
package human

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Count returns "1 queue" or "3 queues". The words may go on: Count(n, "queue is", "queues are").
func Count[N int | int64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// First lists the first n of some names, and how many more there are: "a, b and 3 more".
func First(names []string, n int) string {
	if len(names) <= n {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:n], ", "), len(names)-n)
}

// Alternatives returns "a, b or c" for two values or more.
func Alternatives(values []string) string {
	last := len(values) - 1
	return strings.Join(values[:last], ", ") + " or " + values[last]
}

// Unknown says that there is no such name, and which known one the writer may have meant: "unknown key; did you mean
// queues?". If none is like it, Unknown lists them all. what is a noun whose plural ends with s. There must be a known
// name.
func Unknown(what, name string, known []string) string {
	letters := func(name string) string { return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(name)) }
	near, least := "", max(1, len(name)/3)+1
	known = slices.Sorted(slices.Values(known))
	for _, k := range known {
		if d := distance(letters(name), letters(k)); d < least {
			near, least = k, d
		}
	}
	if near != "" {
		return fmt.Sprintf("unknown %s; did you mean %s?", what, near)
	}
	return fmt.Sprintf("unknown %s; the known %ss are %s", what, what, strings.Join(known, ", "))
}

// distance returns how many letters one text must gain, lose or exchange to become the other (Levenshtein).
func distance(x, y string) int {
	row := make([]int, len(y)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(x) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(y) {
			exchanged := diagonal
			if x[i] != y[j] {
				exchanged++
			}
			diagonal = row[j+1]
			row[j+1] = min(exchanged, row[j]+1, diagonal+1)
		}
	}
	return row[len(y)]
}

// Number returns a number with separators, such as "48,210".
func Number[N int | int64](n N) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// Age returns a number of seconds in at most two units, such as "1.3s", "3m5s" or "4d3h". It has no blanks, so that it
// is one word of a table.
func Age(seconds float64) string {
	d := max(0, time.Duration(seconds*float64(time.Second)))
	unit := time.Second
	if d >= time.Hour {
		unit = time.Minute
	}
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < 24*time.Hour:
		text := strings.Replace(d.Round(unit).String(), "m0s", "m", 1)
		return strings.Replace(text, "h0m", "h", 1)
	}
	return fmt.Sprintf("%dd%dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}

// Relative returns t as "5s ago" or "in 5s", or "-" for the zero time. now is the time of the same clock.
func Relative(now, t time.Time) string {
	switch {
	case t.IsZero():
		return "-"
	case t.After(now):
		return "in " + Age(t.Sub(now).Seconds())
	}
	return Age(now.Sub(t).Seconds()) + " ago"
}

// commandLine matches the beginning of a command line of rota in a text, without its flags.
var commandLine = regexp.MustCompile(`\brota (doctor|event|item|plan|queue|run|task|trigger|worker)\b`)

// CommandsIn returns a text whose command lines of rota have the flag of an environment.
func CommandsIn(ownSign, text string) string {
	return commandLine.ReplaceAllStringFunc(text, func(line string) string {
		return "rota --own-sign " + ShellWord(ownSign) + strings.TrimPrefix(line, "rota")
	})
}

// ShellWord returns a word as a shell reads it back: in quotes if it has characters that a shell does not take as they
// are.
func ShellWord(word string) string {
	plain := func(r rune) bool {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("_-.,:=/+%@", r)
	}
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool { return !plain(r) }) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
