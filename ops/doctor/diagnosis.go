package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/internal/escape"
	"github.com/dutyrota/rota/internal/human"
	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/ops"
)

// diagnosis collects the findings of Diagnose. Each type of check adds the findings about one subject: databaseCheck,
// clusterCheck, dataCheck, rosterCheck, serverCheck, queueCheck and runCheck.
type diagnosis struct {
	c        *ops.Client
	db       *sqldb.DB
	task     string         // the task type being checked
	names    map[string]int // number of servers by short name
	findings []condition.Condition
}

// add adds a finding and returns it, so that the check can say what it is about and since when.
func (d *diagnosis) add(kind condition.Kind, format string, args ...any) *condition.Condition {
	return d.advise(kind, "", format, args...)
}

// advise adds a finding whose hint names what it is about.
func (d *diagnosis) advise(kind condition.Kind, hint, format string, args ...any) *condition.Condition {
	d.findings = append(d.findings, condition.New(kind, d.task, fmt.Sprintf(format, args...), hint))
	return &d.findings[len(d.findings)-1]
}

func (d *diagnosis) ok(kind condition.Kind, format string, args ...any) {
	c := d.add(kind, format, args...)
	c.Status, c.Hint = condition.OK, ""
}

// note adds a finding that is less grave than most of its kind.
func (d *diagnosis) note(kind condition.Kind, hint, format string, args ...any) *condition.Condition {
	c := d.advise(kind, hint, format, args...)
	c.Status = condition.Note
	return c
}

// list adds a finding about some things, unless there are none. Its text ends with the first five of them.
func (d *diagnosis) list(kind condition.Kind, text string, things []string) {
	if len(things) > 0 {
		d.add(kind, "%s: %s", text, human.First(things, 5))
	}
}

// names returns queues or keys as lists show them: names that look like others are quoted.
func names(ids []string) []string {
	shown := make([]string, len(ids))
	for i, id := range ids {
		shown[i] = escape.Name(id)
	}
	return shown
}

// commandName returns the argument by which a command finds a server: the uuid if the process has several servers.
func (d *diagnosis) commandName(s ops.ServerRecord) string {
	if name := ops.ServerName(s.UUID); d.names[name] == 1 {
		return human.ShellWord(name)
	}
	return human.ShellWord(s.UUID)
}

// command returns a command line whose words are quoted for a shell.
func command(verb string, words ...string) string {
	for _, word := range words {
		verb += " " + human.ShellWord(word)
	}
	return verb
}

// wholeSeconds returns the duration of an age that a record has.
func wholeSeconds(age float64) time.Duration {
	return time.Duration(age * float64(time.Second)).Round(time.Second)
}

// notes adds what there is to know about a database.
func (d *diagnosis) notes(ctx context.Context, db *sqldb.DB) error {
	if look := db.Database.Notes; look != nil {
		notes, err := look(ctx, db.Store)
		if err != nil {
			return err
		}
		for _, n := range notes {
			c := d.note(condition.KindOf(n.Kind), n.Hint, "%s", n.Finding)
			c.Subject = n.Subject
			switch {
			case n.OK:
				c.Status = condition.OK
			case n.Problem:
				c.Status = condition.Problem
			}
		}
	}
	return nil
}
