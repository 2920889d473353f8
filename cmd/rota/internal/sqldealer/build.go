package sqldealer

import (
	"errors"
	"fmt"
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
}

// errNoRun refuses {{run_key}} for mode CONTINUOUS.
var errNoRun = errors.New("uses {{run_key}}, the key of a run, but only mode RUN has runs: set mode: " +
	"RUN or do not use it")

func build(c config.SQLDealer, sy syntax, settings center.Settings) (*Dealer, error) {
	b := builder{&Dealer{syntax: sy, afterStart: c.AfterStart}, c, settings}
	b.shape = shape{syntax: sy, columns: slices.Clone(c.Key), key: len(c.Key), xid: -1}
	for _, step := range []func() error{b.checkFile, b.checkKey, b.buildSelect, b.buildCursor, b.buildAfter,
		b.buildExecute, b.buildDiscard, b.buildBacklog} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return b.Dealer, nil
}

// checkFile checks which keys of the file are there.
func (b builder) checkFile() error {
	c := b.file
	each := c.ExecuteEach != ""
	switch {
	case c.Select == "" && c.Execute == "" && !each && len(c.Key) == 0:
		return errors.New(" is missing: give it select, execute and key")
	case c.Select == "":
		return errors.New(".select is missing")
	case c.Execute != "" && each:
		return errors.New(" has both execute and execute_each: keep one")
	case c.Execute == "" && !each:
		return errors.New(" has neither execute nor execute_each")
	case c.Execute != "" && len(c.Key) == 0:
		return errors.New(".key is missing: it names the column that {{keys}} of execute is bound to")
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
	if !b.inRun() && s.uses(runKey) {
		return nil, errNoRun
	}
	s.keyWidth = b.shape.key
	return s, nil
}

func (b builder) buildSelect() error {
	s, err := b.parse(b.file.Select, total, index, queue, queueParameter, parameter, limit, cursor, cursor+".",
		horizonName, after, after+".", ownSign, runKey)
	if err != nil {
		return fmt.Errorf(".select %w", err)
	}
	many := b.settings.Queues > 1 || len(b.settings.QueueNames) > 1
	if many && !s.uses(index, queue, queueParameter) {
		return errors.New(".select returns the same rows for every queue: with more than one queue it must use {{index}} " +
			"(with {{total}}), {{queue}} or {{queue_parameter}}")
	}
	if !s.uses(limit) && !s.usesColumns(cursor) { // for {{cursor}} there is another reason
		return errors.New(".select must use {{limit}}, as in LIMIT {{limit}}: without it each select reads all rows, " +
			"or always the same number, and misses rows behind failed ones")
	}
	b.sel = s
	return nil
}

// listed returns names as a message lists them.
func listed(names []string) string { return strings.Join(names, ", ") }

// indexFold returns the index of a column's name in any case, or -1.
func indexFold(names []string, name string) int {
	return slices.IndexFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
}
