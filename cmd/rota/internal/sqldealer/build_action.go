package sqldealer

import (
	"errors"
	"fmt"
	"strings"
)

func (b builder) buildExecute() error {
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
		return errors.New(".key is missing: without it no row fails for good, and discard has no effect")
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
	s, err := b.parse(text, append(own, server, queue, parameter, ownSign, runKey)...)
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
