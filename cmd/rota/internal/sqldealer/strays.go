package sqldealer

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dutyrota/rota/processor"
)

// CountStrays implements processor.StrayCounter with the statement backlog, which it executes for all rows together and
// for each queue, in one snapshot of the database. For all rows it is the statement of queue 0 of 1, in which each
// number belongs to the queue; where it compares mod(KEY, {{total}}) with {{index}}, that comparison is left out, so
// that rows without a key count too. In another form of the division, rows whose key is NULL cannot be counted. A
// statement with {{mine}} alone has no strays (N4), and one with {{queue}} cannot be undivided: neither is executed.
func (d *Dealer) CountStrays(ctx context.Context, s processor.Selection) (strays processor.Strays, err error) {
	if d.undivided == nil {
		return strays, nil
	}
	if d, err = d.at(s.Queue.Database); err != nil {
		return strays, err
	}
	queues := d.queues(s.Total)
	if len(queues) == 0 || queues[0] != s.Queue.Index {
		return strays, nil // the owner of another queue counts
	}
	// READ COMMITTED would count rows twice, or not at all, that other workers change meanwhile.
	tx, err := d.database.DB().BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return strays, fmt.Errorf("begin to count rows%s: %w", in(d.name), err)
	}
	defer tx.Rollback()
	if strays.Items, err = d.countIn(ctx, tx, d.undivided, s, 0, 1); err != nil {
		return processor.Strays{}, err
	}
	for _, index := range queues {
		n, err := d.countIn(ctx, tx, d.backlog, s, index, s.Total)
		if err != nil {
			return processor.Strays{}, err
		}
		strays.InQueues += n
	}
	source, _ := d.sel.source(0)
	strays.Select = shortened(strings.Join(strings.Fields(source), " "))
	return strays, nil
}

// mostShown is how much of a select a finding has.
const mostShown = 500

func shortened(text string) string {
	if runes := []rune(text); len(runes) > mostShown {
		return string(runes[:mostShown]) + "..."
	}
	return text
}

// queues returns the numbers of the queues of a total whose rows are in this database, as the file says.
func (d *Dealer) queues(total int) (list []int) {
	for i := range total {
		if name, err := d.settings.DatabaseOf(strconv.Itoa(i)); err == nil && name == d.name {
			list = append(list, i)
		}
	}
	return list
}

// countIn returns what a statement of backlog counts for a queue.
func (d *Dealer) countIn(ctx context.Context, tx *sql.Tx, stmt *statement, s processor.Selection, index, total int) (
	n int64, err error,
) {
	s.Queue.ID, s.Queue.Index, s.Total = strconv.Itoa(index), index, total
	var b processor.Backlog
	rows, err := tx.QueryContext(ctx, stmt.text(0), stmt.values(args{Selection: &s, shape: &d.shape}.value)...)
	if err == nil {
		defer rows.Close()
		b, err = readBacklog(rows)
	}
	if err != nil {
		return 0, fmt.Errorf("run backlog%s: %w", in(d.name), err)
	}
	return b.Items, nil
}

var (
	// beforeCondition ends what stands before a condition.
	beforeCondition = regexp.MustCompile(`(?i)(\b(WHERE|AND|OR|ON)\s+|\()\s*$`)
	// behindCondition begins what stands behind one.
	behindCondition = regexp.MustCompile(`(?i)^\s*($|[);]|(AND|OR|ORDER|GROUP|LIMIT|UNION)\b)`)
	modEnd          = regexp.MustCompile(`^\s*\)\s*=\s*$`)
	percentStart    = regexp.MustCompile(`([\w."]+)\s*%\s*$`)
	percentEnd      = regexp.MustCompile(`^\s*=\s*$`)
)

// withoutDivision returns the statement without its conditions mod(KEY, {{total}}) = {{index}} or KEY % {{total}} =
// {{index}}, and the key of the first one; empty if it has none. It finds no other forms of such a condition.
func (s *statement) withoutDivision() (whole *statement, key string) {
	whole = &statement{}
	*whole = *s
	whole.parts, whole.names, whole.sources = slices.Clone(s.parts), slices.Clone(s.names), slices.Clone(s.sources)
	for i := 0; i+1 < len(whole.names); {
		start, found := -1, ""
		if whole.names[i] == total && whole.names[i+1] == index && behindCondition.MatchString(whole.parts[i+2]) {
			start, found = divisionStart(whole.parts[i], whole.parts[i+1])
		}
		if start < 0 || !beforeCondition.MatchString(whole.parts[i][:start]) {
			i++
			continue
		}
		if key == "" {
			key = found
		}
		whole.parts[i] = whole.parts[i][:start] + "1 = 1" + whole.parts[i+2]
		whole.parts = slices.Delete(whole.parts, i+1, i+3)
		whole.names = slices.Delete(whole.names, i, i+2)
		whole.sources = slices.Delete(whole.sources, i, i+2)
	}
	return whole, key
}

// divisionStart returns where mod(KEY, or KEY % begins at the end of a text, and the key; -1 if the text does not end
// so. next is the text between {{total}} and {{index}}.
func divisionStart(text, next string) (start int, key string) {
	if m := percentStart.FindStringSubmatchIndex(text); m != nil && percentEnd.MatchString(next) {
		return m[0], text[m[2]:m[3]]
	}
	inside, comma := strings.CutSuffix(strings.TrimRight(text, " \t\r\n"), ",")
	if !comma || !modEnd.MatchString(next) {
		return -1, ""
	}
	depth := 0
	for i := len(inside) - 1; i >= 0; i-- {
		switch inside[i] {
		case ')':
			depth++
		case '(':
			if depth--; depth < 0 {
				before := strings.TrimRight(inside[:i], " \t")
				if name := len(before) - len("mod"); name >= 0 && strings.EqualFold(before[name:], "mod") {
					return name, strings.TrimSpace(inside[i+1:])
				}
				return -1, ""
			}
		}
	}
	return -1, ""
}
