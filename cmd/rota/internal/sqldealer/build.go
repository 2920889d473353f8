package sqldealer

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/config"
	"github.com/dutyrota/rota/schema"
)

// errNoRun: mode CONTINUOUS has no runs.
var errNoRun = errors.New("{{run_key}} is the key of a run, and only mode RUN has runs: set mode: RUN, or leave it out")

func manyQueues(s center.Settings) bool { return s.Queues > 1 || len(s.QueueNames) > 1 }

// build returns errors that begin with what follows "sql" in the path.
func build(c config.SQLDealer, dialect schema.Dialect, settings center.Settings) (*Dealer, error) {
	d := &Dealer{dialect: dialect, each: c.ExecuteEach != "", runs: settings.Mode == center.ModeRun}
	switch {
	case c == config.SQLDealer{}:
		return nil, errors.New(": is missing: give it select, execute and key")
	case c.Select == "":
		return nil, errors.New(".select: is missing")
	case c.Execute != "" && d.each:
		return nil, errors.New(": has both execute and execute_each: keep one")
	case c.Execute == "" && !d.each:
		return nil, errors.New(": has neither execute nor execute_each")
	case c.Execute != "" && c.Key == "":
		return nil, errors.New(".key: is missing: it names the column that {{keys}} of execute is bound to")
	}
	if c.Key != "" {
		d.keyed, d.columns = true, []string{c.Key}
	}
	if err := d.parseSelect(c.Select, manyQueues(settings)); err != nil {
		return nil, fmt.Errorf(".select: %w", err)
	}
	d.start = c.CursorStart
	switch reads := d.sel.mentions(cursor); {
	case reads && c.Key == "":
		return nil, errors.New(".key: is missing: it names the column whose last value {{cursor}} is")
	case reads && c.CursorStart == "":
		return nil, errors.New(".cursor_start: is missing: it is what {{cursor}} is before the first row, such as 0")
	case !reads && c.CursorStart != "":
		return nil, fmt.Errorf(".cursor_start (%s): select does not use {{cursor}}", c.CursorStart)
	}
	if d.each {
		if err := d.parseEach(c.ExecuteEach); err != nil {
			return nil, fmt.Errorf(".execute_each: %w", err)
		}
		return d, nil
	}
	if err := d.parseExecute(c.Execute); err != nil {
		return nil, fmt.Errorf(".execute: %w", err)
	}
	return d, nil
}

func (d *Dealer) parse(text string, known ...string) (*statement, error) {
	s, err := parse(text, d.dialect, known...)
	if err == nil && !d.runs && s.mentions(runKey) {
		err = errNoRun
	}
	return s, err
}

func (d *Dealer) parseSelect(text string, many bool) (err error) {
	d.sel, err = d.parse(text, total, index, queue, queueParameter, parameter, limit, cursor, ownSign, runKey)
	if err != nil {
		return err
	}
	if many && !d.sel.mentions(index, queue, queueParameter) {
		return errors.New("every queue would get the same rows: with more than one queue it must use {{index}} (with {{total}}), {{queue}} or {{queue_parameter}}")
	}
	return nil
}

func (d *Dealer) parseExecute(text string) (err error) {
	d.exec, err = d.parse(text, keys, server, queue, parameter, ownSign, runKey)
	if err != nil {
		return err
	}
	if !d.exec.mentions(keys) {
		return errors.New("must use {{keys}}, or it would not know its rows (or write execute_each)")
	}
	return nil
}

// parseEach also finds out which columns the statement needs.
func (d *Dealer) parseEach(text string) (err error) {
	d.exec, err = d.parse(text, row, server, queue, parameter, ownSign, runKey)
	if err != nil {
		return err
	}
	for _, name := range d.exec.names {
		column, isColumn := strings.CutPrefix(name, row)
		if !isColumn {
			d.bindings = append(d.bindings, -1)
			continue
		}
		i := slices.IndexFunc(d.columns, func(c string) bool { return strings.EqualFold(c, column) })
		if i < 0 {
			i = len(d.columns)
			d.columns = append(d.columns, column)
		}
		d.bindings = append(d.bindings, i)
	}
	return nil
}
