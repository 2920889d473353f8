package sqldealer

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/config"
)

// builder makes a Dealer from the keys of the file. The errors of its methods continue the path
// "tasks.NAME.dealer.sql".
type builder struct {
	*Dealer
	file     config.SQLDealer
	settings center.Settings
	program  bool // a program executes the rows, and execute only marks them
	endpoint bool // this is an endpoint, which marks none
}

// build returns the dealer of a task, or all that is wrong with it. A rule that needs what another one refuses is not
// looked at.
func build(task config.Task, sy syntax) (*Dealer, []error) {
	c, program := task.SQL, task.Program.Given()
	b := builder{
		&Dealer{syntax: sy, settings: task.Settings.WithDefaults()}, c, task.Settings, program, task.Program.HTTP.Each,
	}
	b.shape = shape{
		syntax: sy, columns: slices.Clone(c.Key), key: len(c.Key), xid: -1, order: -1, start: c.AfterStart, whole: program,
	}
	b.external = program
	if err := b.checkThere(); err != nil {
		return nil, []error{err}
	}
	errs := []error{b.checkExecute(), b.checkKey(), b.buildSelect()}
	if b.sel != nil {
		errs = append(errs, b.buildCursor(), b.buildAfter(), b.buildOrder())
	}
	errs = append(errs, b.buildExecute(), b.buildDiscard(), b.buildBacklog())
	noKey := false
	errs = slices.DeleteFunc(errs, func(err error) bool {
		again := noKey && errors.Is(err, errNoKey)
		noKey = noKey || errors.Is(err, errNoKey)
		return err == nil || again
	})
	if len(errs) > 0 {
		return nil, errs
	}
	return b.Dealer, nil
}

// errNoKey begins each reason why a key is needed. The first one is enough.
var errNoKey = errors.New(".key is missing")

// checkThere checks that the file has something to check.
func (b builder) checkThere() error {
	c := b.file
	switch none := c.Select == "" && c.Execute == "" && c.ExecuteEach == "" && len(c.Key) == 0; {
	case none && b.program:
		return errors.New(" is missing: give it select and key")
	case none:
		return errors.New(" is missing: give it select, execute and key")
	}
	return nil
}

// checkExecute checks what the file has to execute rows.
func (b builder) checkExecute() error {
	c := b.file
	each := c.ExecuteEach != ""
	switch {
	case c.Execute != "" && each:
		return errors.New(" has both execute and execute_each: keep one")
	case b.program && len(c.Key) == 0:
		return fmt.Errorf("%w: the replies of a program name the rows by it", errNoKey)
	case c.Execute == "" && !each && !b.program:
		return errors.New(" has neither execute nor execute_each, and dealer has no command and no http")
	case c.Execute != "" && len(c.Key) == 0:
		return fmt.Errorf("%w: it names the column that {{keys}} of execute is bound to", errNoKey)
	}
	return nil
}

// checkKey checks that the key names each column once.
func (b builder) checkKey() error {
	for i, name := range b.file.Key {
		switch {
		case name == "":
			return fmt.Errorf(".key (%s) must not have an empty name", listed(b.file.Key))
		case indexFold(b.file.Key, name) < i:
			return fmt.Errorf(".key (%s) must name each column once", listed(b.file.Key))
		}
	}
	return nil
}

func (b builder) inRun() bool { return b.settings.Mode == center.ModeRun }

// parse returns a statement of the file. Its errors continue the path of the statement.
func (b builder) parse(text string, known ...string) (*statement, error) {
	s, err := parse(text, b.syntax, known...)
	if err != nil {
		return nil, err
	}
	if name := s.ofRun(); name != "" && !b.inRun() {
		return nil, fmt.Errorf("uses {{%s}}, which a run has, but only mode RUN has runs: set mode: RUN or do not use it",
			name)
	}
	for _, name := range s.names {
		if (strings.HasPrefix(name, runParam) || slices.Contains(runNames, name)) && !slices.Contains(b.runUses, name) {
			b.runUses = append(b.runUses, name)
		}
	}
	s.keyWidth, s.orderKey = b.shape.key, b.file.OrderKey
	return s, nil
}

func (b builder) buildSelect() error {
	if b.file.Select == "" {
		return errors.New(".select is missing")
	}
	s, err := b.parse(b.file.Select, append([]string{
		mine, mineHash, total, index, queue, queueParameter, parameter, limit, cursor, cursor + ".", horizonName, after,
		after + ".", held, ownSign,
	}, runNames...)...)
	if err != nil {
		return fmt.Errorf(".select %w", err)
	}
	b.sel = s
	var errs []error
	if err := b.checkMine(s); err != nil {
		errs = append(errs, fmt.Errorf(".select %w", err))
	}
	if err := b.checkDivides(s); err != nil {
		errs = append(errs, fmt.Errorf(".select returns %w", err))
	}
	if !s.uses(limit) && !s.usesColumns(cursor) { // for {{cursor}} there is another reason
		errs = append(errs, errors.New(".select must use {{limit}}, as in LIMIT {{limit}}: without it each select reads all "+
			"rows, or always the same number, and misses rows behind failed ones"))
	}
	return errors.Join(errs...)
}

// checkDivides checks that a statement takes the rows of one queue, if a database has those of several queues.
func (b builder) checkDivides(s *statement) error {
	names, _ := b.settings.Databases() // settings that name none for a queue are refused elsewhere
	many := max(b.settings.Queues, len(b.settings.QueueNames)) > max(len(names), 1)
	if many && !s.uses(index, queue, queueParameter) && s.countMine() == 0 {
		return errors.New("the same rows for every queue: with more than one queue it must use {{mine KEY}}, {{queue}}, " +
			"{{queue_parameter}}, or {{index}} with {{total}}")
	}
	return nil
}

// listed returns names as a message lists them.
func listed(names []string) string { return strings.Join(names, ", ") }

// indexFold returns the index of a column's name in any case, or -1.
func indexFold(names []string, name string) int {
	return slices.IndexFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
}

func (b builder) buildExecute() error {
	if b.file.Execute == "" && b.file.ExecuteEach == "" {
		if b.endpoint && b.sel != nil && !b.sel.usesColumns(cursor) {
			return errors.New(".execute is missing: it marks the rows that the endpoint has accepted, else they come again")
		}
		return nil // a program does it all
	}
	if b.file.ExecuteEach != "" {
		a, err := b.parseAction("execute_each", b.file.ExecuteEach, row)
		b.exec = a
		return err
	}
	a, err := b.parseAction("execute", b.file.Execute, keys)
	if err != nil {
		return err
	}
	if !a.uses(keys) {
		return errors.New(".execute must use {{keys}} to find its rows (or use execute_each instead)")
	}
	b.exec = a
	return b.checkParameters()
}

func (b builder) buildDiscard() error {
	if b.file.Discard == "" {
		return nil
	}
	switch {
	case len(b.file.Key) == 0:
		return fmt.Errorf("%w: without it no row fails for good, and discard has no effect", errNoKey)
	case b.inRun():
		return errors.New(".discard has no effect in mode RUN: a run gives up no row; remove it")
	}
	a, err := b.parseAction("discard", b.file.Discard, keys, row, lastError)
	if err != nil {
		return err
	}
	if !a.uses(keys) && !a.usesRow(b.file.Key) {
		return fmt.Errorf(".discard must use {{keys}}, or %s, to find its row", rowPlaceholders(b.file.Key))
	}
	b.discard = a
	return nil
}

// rowPlaceholders lists the placeholders of columns: {{row.region}} and {{row.id}}.
func rowPlaceholders(columns []string) string {
	list := make([]string, len(columns))
	for i, c := range columns {
		list[i] = "{{" + row + c + "}}"
	}
	return strings.Join(list, " and ")
}

// parseAction also determines the columns that the statement needs.
func (b builder) parseAction(name, text string, own ...string) (*action, error) {
	s, err := b.parse(text, slices.Concat(own, []string{server, queue, parameter, ownSign}, runNames)...)
	if err != nil {
		return nil, fmt.Errorf(".%s %w", name, err)
	}
	a := &action{statement: s, name: name}
	for _, used := range s.names {
		at := -1
		if column, isColumn := strings.CutPrefix(used, row); isColumn {
			at = b.shape.add(column)
		}
		a.bindings = append(a.bindings, at)
	}
	return a, nil
}

// checkParameters checks that the keys of a whole batch fit into one statement.
func (b builder) checkParameters() error {
	width := b.shape.key
	if width == 0 {
		return nil // checkExecute says that the key is missing
	}
	most := (b.syntax.mostParameters - b.exec.markCount(0)) / (b.exec.count(keys) * width)
	if n := b.settings.ExecuteNumber; n > most {
		of := ""
		if width > 1 {
			of = fmt.Sprintf(" of %d columns", width)
		}
		return fmt.Errorf(".execute takes %d keys%s at most: execute_number (%d) must not be larger", most, of, n)
	}
	return nil
}

var orderBy = regexp.MustCompile(`(?i)\bORDER\s+BY\b`)

// buildAfter checks the keys of the file that {{after}} in select needs.
func (b builder) buildAfter() error {
	key, start := b.file.Key, b.file.AfterStart
	if !b.sel.usesColumns(after) {
		if len(start) > 0 {
			return fmt.Errorf(".after_start (%s) has no effect: select does not use {{after}}", listed(start))
		}
		return nil
	}
	switch {
	case b.cursor != nil:
		return errors.New(".select uses both {{after}} and {{cursor}}: with {{cursor}} no row is selected again, " +
			"so remove {{after}}")
	case len(key) == 0:
		return fmt.Errorf("%w: it names the column by which select is ordered, and whose value {{after}} is", errNoKey)
	}
	if err := checkStart(after, start, "key", key); err != nil {
		return err
	}
	for i := range key {
		b.shape.ordered = append(b.shape.ordered, i)
	}
	return checkColumns(b.sel, after, "key", key)
}

// checkStart checks the value of {{cursor}} or {{after}} before the first row.
func checkStart(placeholder string, start []string, of string, columns []string) error {
	switch {
	case len(start) == 0:
		return fmt.Errorf(".%s_start is missing: it is the value of {{%[1]s}} before the first row, such as 0", placeholder)
	case len(start) != len(columns):
		return fmt.Errorf(".%s_start (%s) must have a value for each column of the %s (%s)", placeholder, listed(start), of,
			listed(columns))
	case slices.Contains(start, ""):
		return fmt.Errorf(".%s_start (%s) must not have an empty value: for the empty text write \\s", placeholder,
			listed(start))
	}
	return nil
}

// checkColumns checks that select orders by the columns of the cursor or of the key, behind which it goes on, and
// compares all of them. If there is only one, {{cursor}} and {{after}} stand for it.
func checkColumns(sel *statement, placeholder, of string, columns []string) error {
	if !slices.ContainsFunc(sel.parts, orderBy.MatchString) {
		return fmt.Errorf(".select must return its rows in the order of the %s: add ORDER BY %s", of, listed(columns))
	}
	for _, c := range columns {
		if !sel.usesColumn(placeholder, c) && (len(columns) > 1 || !sel.uses(placeholder)) {
			return fmt.Errorf(".select must use {{%s.%s}}: the %s has the columns %s", placeholder, c, of, listed(columns))
		}
	}
	for _, used := range sel.names {
		column, isColumn := strings.CutPrefix(used, placeholder+".")
		if isColumn && indexFold(columns, column) < 0 || used == placeholder && len(columns) > 1 {
			return fmt.Errorf(".select uses {{%s}}, but the %s has the columns %s: write {{%s.%s}}", used, of, listed(columns),
				placeholder, columns[0])
		}
	}
	return checkRowValues(sel, placeholder, columns)
}

// checkRowValues refuses (a, b) > ({{after.a}}, {{after.b}}) where no index serves it: each select would read all rows
// before that position.
func checkRowValues(sel *statement, placeholder string, columns []string) error {
	if !sel.syntax.rowsUnordered {
		return nil
	}
	for i, name := range sel.names[1:] {
		last := sel.names[i]
		if strings.TrimSpace(sel.parts[i+1]) == "," && strings.HasPrefix(last, placeholder+".") &&
			strings.HasPrefix(name, placeholder+".") {
			return fmt.Errorf(".select compares with ({{%s}}, {{%s}}), for which this database uses no index: write (%s)", last,
				name, behind(placeholder, columns))
		}
	}
	return nil
}

// behind returns the condition for rows behind a position, without row values.
func behind(placeholder string, columns []string) string {
	c := columns[0]
	condition := fmt.Sprintf("%s > {{%s.%[1]s}}", c, placeholder)
	if len(columns) == 1 {
		return condition
	}
	rest := behind(placeholder, columns[1:])
	if len(columns) > 2 {
		rest = "(" + rest + ")"
	}
	return fmt.Sprintf("%s OR %s = {{%s.%[2]s}} AND %[4]s", condition, c, placeholder, rest)
}

// buildCursor checks the keys of the file that {{cursor}} in select needs.
func (b builder) buildCursor() error {
	c := b.file
	if !b.sel.usesColumns(cursor) {
		return refuseCursorKeys(c, b.sel.uses(horizonName))
	}
	spec := &cursorSpec{
		syntax: b.syntax, names: c.Cursor, start: c.CursorStart, inOrder: c.CommitsInOrder, inRun: b.inRun(),
	}
	if len(spec.names) == 0 {
		spec.names = c.Key
	}
	if err := checkCursor(c, b.sel, spec.names); err != nil {
		return err
	}
	for _, name := range spec.names {
		spec.at = append(spec.at, b.shape.add(name))
	}
	b.cursor, b.shape.ordered = spec, spec.at
	return b.buildHorizon()
}

// buildHorizon chooses how select leaves out the rows that a later commit may precede.
func (b builder) buildHorizon() error {
	c, first := b.file, b.cursor.names[0]
	used := b.sel.uses(horizonName)
	lags := c.CursorLag != 0 || c.CursorNewest != ""
	switch {
	case c.CommitsInOrder && (lags || used):
		return errors.New(".commits_in_order (true) excludes cursor_lag, cursor_newest and {{horizon}}: " +
			"they are for rows that become visible in another order than the cursor's")
	case lags && b.inRun():
		return fmt.Errorf(".cursor_lag (%s) has no effect in mode RUN: each run reads from cursor_start on; "+
			"remove cursor_lag, cursor_newest and {{horizon}}", c.CursorLag)
	case lags && (c.CursorLag <= 0 || c.CursorNewest == ""):
		return fmt.Errorf(".cursor_lag (%s) must be positive, and cursor_newest (%q) must be a statement that selects the "+
			"largest %s: SELECT max(%[3]s) FROM the_table", c.CursorLag, c.CursorNewest, first)
	case c.CommitsInOrder || b.inRun() && !used:
		return nil
	case !lags && !b.syntax.transactionIDs:
		return fmt.Errorf(".select uses {{cursor}}, and a row that is committed late, with a smaller %s than the last one "+
			"read, would be lost: set cursor_lag and cursor_newest, or commits_in_order: true if that cannot happen", first)
	case !used && lags:
		return fmt.Errorf(".select must not read rows that are younger than cursor_lag: add %s <= {{horizon}}", first)
	case !used:
		return fmt.Errorf(".select uses {{cursor}}, and a row that is committed late, with a smaller %s than the last one "+
			"read, would be lost: use a column of type xid8 and the condition xid < {{horizon}} (see docs/sql-dealer.md), "+
			"or set cursor_lag and cursor_newest, or commits_in_order: true if that cannot happen", first)
	case lags:
		newest, err := b.parse(c.CursorNewest, parameter, ownSign)
		if err != nil {
			return fmt.Errorf(".cursor_newest %w", err)
		}
		b.cursor.horizon = newLagHorizon(first, newest, c.CursorLag)
	default:
		b.cursor.horizon, b.cursor.digits, b.shape.xid = xidHorizon{first}, true, b.cursor.at[0]
	}
	return nil
}

// refuseCursorKeys returns an error if the file has keys that need {{cursor}} in select.
func refuseCursorKeys(c config.SQLDealer, horizonUsed bool) error {
	var errs []error
	for _, k := range []struct {
		name, value string
		set         bool
	}{
		{"cursor", listed(c.Cursor), len(c.Cursor) > 0},
		{"cursor_start", listed(c.CursorStart), len(c.CursorStart) > 0},
		{"cursor_lag", c.CursorLag.String(), c.CursorLag != 0},
		{"cursor_newest", c.CursorNewest, c.CursorNewest != ""},
		{"commits_in_order", "true", c.CommitsInOrder},
	} {
		if k.set {
			errs = append(errs, fmt.Errorf(".%s (%s) has no effect: select does not use {{cursor}}", k.name, k.value))
		}
	}
	if horizonUsed {
		errs = append(errs, errors.New(".select uses {{horizon}} without {{cursor}}: only rows behind a cursor can be lost"))
	}
	return errors.Join(errs...)
}

// checkCursor checks what each select with a cursor needs.
func checkCursor(c config.SQLDealer, sel *statement, names []string) error {
	if len(c.Key) == 0 {
		return fmt.Errorf("%w: it names the column that identifies a row, and whose last value {{cursor}} is "+
			"without the key cursor", errNoKey)
	}
	if err := checkStart(cursor, c.CursorStart, "cursor", names); err != nil {
		return err
	}
	if !sel.uses(limit) {
		return errors.New(".select must use {{limit}}: with {{cursor}}, " +
			"one more row than is executed shows whether the last one is unique")
	}
	return checkColumns(sel, cursor, "cursor", names)
}

func (b builder) buildBacklog() error {
	if b.file.Backlog == "" {
		return nil
	}
	if b.inRun() {
		return errors.New(".backlog has no effect in mode RUN: a run shows its progress by itself; remove it")
	}
	s, err := b.parse(b.file.Backlog, mine, mineHash, total, index, queue, queueParameter, parameter, ownSign)
	if err != nil {
		return fmt.Errorf(".backlog %w", err)
	}
	if err := b.checkMine(s); err != nil {
		return fmt.Errorf(".backlog %w", err)
	}
	if err := b.checkDivides(s); err != nil {
		return fmt.Errorf(".backlog counts %w", err)
	}
	if b.backlog = s; s.uses(index) && !s.uses(queue, queueParameter) {
		b.undivided, _ = s.withoutDivision()
	}
	return nil
}
