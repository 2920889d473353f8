package ops

import (
	"fmt"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/human"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/runs"
)

// Client reads and changes a roster for operators and for programs that submit runs. It has a bundle of methods for
// each kind of thing, such as Tasks and Queues. All methods may be called concurrently. They obey their context.
type Client struct {
	*center.Center

	db      *sqldb.DB
	roster  *roster.Roster
	runs    *runs.Engine
	ownSign string
}

// New returns a Client for the environment of c. Close of either closes both.
func New(c *center.Center) *Client {
	return &Client{c, c.Roster().DB, c.Roster(), c.Engine(), c.OwnSign()}
}

// In returns a Client for another environment of the same database. Close of either closes both.
func (c *Client) In(ownSign string) (*Client, error) {
	other, err := c.Center.In(ownSign)
	if err != nil {
		return nil, err
	}
	return New(other), nil
}

// CommandLines returns a text, such as a hint, whose command lines of rota work for this environment as they stand.
func (c *Client) CommandLines(text string) string { return CommandLines(c.ownSign, text) }

// CommandLines is [Client.CommandLines] for an environment by its name; empty stands for the one without a name.
func CommandLines(ownSign, text string) string {
	if ownSign == "" || ownSign == center.DefaultOwnSign {
		return text
	}
	return human.CommandsIn(ownSign, text)
}

// Runs returns the bundle that lists, submits and controls the runs of task types of mode RUN.
func (c *Client) Runs() *runs.Runs { return c.runs.Runs }

// Triggers returns the bundle of triggers, which begin runs.
func (c *Client) Triggers() *runs.Triggers { return c.runs.Triggers }

// Backfills returns the bundle of backfills: runs for the slots of a trigger in a range of time (R20).
func (c *Client) Backfills() *runs.Backfills { return c.runs.Backfills }

// Records are rows for operators, with the names of the columns as JSON tags. A NULL is nil if the field is a pointer,
// otherwise the zero value. A duration is read from milliseconds. Ages are seconds by the database's clock. Records are
// read without locks: the protocol does not depend on them.

// seconds returns how long ago t was, in seconds with three digits, as the view shows it.
func seconds(now, t time.Time) float64 {
	return float64(now.Sub(t).Milliseconds()) / 1000
}

// ageOf returns how long ago t was; nil if t is nil.
func ageOf(now time.Time, t *time.Time) *float64 {
	if t == nil {
		return nil
	}
	age := seconds(now, *t)
	return &age
}

// latest returns a query for the last limit rows, the latest last.
func latest(from, time, key string, limit int) string {
	return fmt.Sprintf(`SELECT {columns} FROM (SELECT * FROM %s ORDER BY %s DESC, %s DESC LIMIT %d) x ORDER BY %s, %s`,
		from, time, key, limit, time, key)
}
