package sqldealer

import (
	"errors"
	"fmt"
	"strings"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/config"
)

// errNoRun refuses {{run_key}} for mode CONTINUOUS.
var errNoRun = errors.New("uses {{run_key}}, the key of a run, but only mode RUN has runs: set mode: RUN or do not use it")

func manyQueues(s center.Settings) bool { return s.Queues > 1 || len(s.QueueNames) > 1 }

// build parses the statements of a task. Its errors continue the path
// "tasks.NAME.dealer.sql".
func build(c config.SQLDealer, sy syntax, settings center.Settings) (*Dealer, error) {
	if err := checkKeys(c); err != nil {
		return nil, err
	}
	d := &Dealer{syntax: sy, each: c.ExecuteEach != "", modeRun: settings.Mode == center.ModeRun, afterStart: c.AfterStart}
	if c.Key != "" {
		d.keyed, d.columns = true, []string{c.Key}
	}
	if err := d.parseSelect(c.Select, manyQueues(settings)); err != nil {
		return nil, fmt.Errorf(".select %w", err)
	}
	if err := d.buildCursor(c); err != nil {
		return nil, err
	}
	if err := checkAfter(c, d.sel.uses(after), d.cursor != nil); err != nil {
		return nil, err
	}
	if d.each {
		if err := d.parseEach(c.ExecuteEach); err != nil {
			return nil, fmt.Errorf(".execute_each %w", err)
		}
		return d, nil
	}
	if err := d.parseExecute(c.Execute); err != nil {
		return nil, fmt.Errorf(".execute %w", err)
	}
	return d, d.checkParameters(settings.ExecuteNumber)
}

// checkKeys checks which keys of the file are there.
func checkKeys(c config.SQLDealer) error {
	each := c.ExecuteEach != ""
	switch {
	case c.Select == "" && c.Execute == "" && !each && c.Key == "":
		return errors.New(" is missing: give it select, execute and key")
	case c.Select == "":
		return errors.New(".select is missing")
	case c.Execute != "" && each:
		return errors.New(" has both execute and execute_each: keep one")
	case c.Execute == "" && !each:
		return errors.New(" has neither execute nor execute_each")
	case c.Execute != "" && c.Key == "":
		return errors.New(".key is missing: it names the column that {{keys}} of execute is bound to")
	}
	return nil
}

func (d *Dealer) parse(text string, known ...string) (*statement, error) {
	s, err := parse(text, d.syntax, known...)
	if err == nil && !d.modeRun && s.uses(runKey) {
		err = errNoRun
	}
	return s, err
}

func (d *Dealer) parseSelect(text string, many bool) (err error) {
	d.sel, err = d.parse(text, total, index, queue, queueParameter, parameter, limit, cursor, cursor+".", horizonName, after, ownSign, runKey)
	if err != nil {
		return err
	}
	if many && !d.sel.uses(index, queue, queueParameter) {
		return errors.New("returns the same rows for every queue: with more than one queue it must use {{index}} (with {{total}}), {{queue}} or {{queue_parameter}}")
	}
	if !d.sel.uses(limit, cursor) { // for {{cursor}} there is another reason
		return errors.New("must use {{limit}}, as in LIMIT {{limit}}: without it each select reads all rows, or always the same number, and misses rows behind failed ones")
	}
	return nil
}

func (d *Dealer) parseExecute(text string) (err error) {
	d.exec, err = d.parse(text, keys, server, queue, parameter, ownSign, runKey)
	if err != nil {
		return err
	}
	if !d.exec.uses(keys) {
		return errors.New("must use {{keys}} to find its rows (or use execute_each instead)")
	}
	return nil
}

// parseEach also determines the columns that the statement needs.
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
		d.bindings = append(d.bindings, d.addColumn(column))
	}
	return nil
}
