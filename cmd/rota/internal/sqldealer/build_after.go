package sqldealer

import (
	"errors"
	"fmt"

	"github.com/dutyrota/rota/config"
)

// checkAfter checks the keys that {{after}} in select needs.
func checkAfter(c config.SQLDealer, used, cursorUsed bool) error {
	switch {
	case used && cursorUsed:
		return errors.New(".select uses both {{after}} and {{cursor}}: with {{cursor}} no row is selected again, so remove {{after}}")
	case used && c.Key == "":
		return errors.New(".key is missing: it names the column by which select is ordered, and whose value {{after}} is")
	case used && c.AfterStart == "":
		return errors.New(".after_start is missing: it is the value of {{after}} before the first row, such as 0")
	case !used && c.AfterStart != "":
		return fmt.Errorf(".after_start (%s) has no effect: select does not use {{after}}", c.AfterStart)
	}
	return nil
}

// checkParameters checks that the keys of a whole batch fit into one statement.
func (d *Dealer) checkParameters(executeNumber int) error {
	most := d.syntax.mostParameters
	for _, name := range d.exec.names {
		if name != keys {
			most--
		}
	}
	if most = most / d.exec.count(keys); executeNumber > most {
		return fmt.Errorf(".execute takes %d keys at most: execute_number (%d) must not be larger", most, executeNumber)
	}
	return nil
}
