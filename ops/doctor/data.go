package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/internal/escape"
	"github.com/dutyrota/rota/internal/human"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/schema"
)

// dataCheck checks the data databases (F11).
type dataCheck struct{ *diagnosis }

// dataPatience is how long the doctor waits for a data database.
const dataPatience = 5 * time.Second

// dataNeeds are the least rights of a worker in a data database.
var dataNeeds = []need{
	{"rota_data", "SELECT INSERT", "own_sign"},
	{"rota_fence", "SELECT INSERT UPDATE", "own_sign"},
}

// all checks the data databases that this process has opened, each in a goroutine of its own, so that one that is away
// delays no other. It notes those that only the roster knows.
func (d dataCheck) all(ctx context.Context) error {
	rows, err := d.c.Roster().Data().Rows(ctx)
	if err != nil {
		return err
	}
	opened := d.c.AllData()
	each := make([]diagnosis, len(opened))
	var all sync.WaitGroup
	for i, db := range opened {
		row := roster.DataRow{Name: db.Name()}
		if at := slices.IndexFunc(rows, func(r roster.DataRow) bool { return r.Name == row.Name }); at >= 0 {
			row = rows[at]
			rows = slices.Delete(rows, at, at+1)
		}
		each[i].c, each[i].db = d.c, d.db
		all.Go(func() { dataCheck{&each[i]}.one(ctx, db, row) })
	}
	all.Wait()
	for _, e := range each {
		d.findings = append(d.findings, e.findings...)
	}
	for _, row := range rows {
		d.note(condition.Data, "name it in data of rota.yaml; if no task type uses it any more, delete its row from "+
			"schedule_data", "%s at %s is not checked, because this process does not have it", row.Name,
			row.Address).Subject = row.Name
	}
	return nil
}

// one checks one data database.
func (d dataCheck) one(ctx context.Context, data *center.Data, row roster.DataRow) {
	ctx, cancel := context.WithTimeout(ctx, dataPatience)
	defer cancel()
	said := len(d.findings)
	err := d.look(ctx, data, row)
	if err != nil {
		d.advise(condition.Data, "its queues are not worked; the others go on", "%s at %s cannot be used: %s", row.Name,
			data.Address(), sqldb.OneLine(err))
	}
	for i := range d.findings[said:] {
		d.findings[said+i].Subject = row.Name
	}
}

func (d dataCheck) look(ctx context.Context, data *center.Data, row roster.DataRow) error {
	db, err := data.Reach(ctx)
	if err != nil {
		return err
	}
	if err := d.settings(ctx, db, row.Name); err != nil {
		return err
	}
	switch err := schema.CheckFence(ctx, db.Store, db.Name); {
	case errors.Is(err, schema.ErrMissing) && !row.Marked:
		d.note(condition.Data, createFence, "%s at %s has no tables of the fence yet, and no worker has used it", row.Name,
			data.Address())
		return nil
	case errors.Is(err, schema.ErrMissing):
		d.advise(condition.Data, createFence+"; if it was restored, docs/data.md says what that means",
			"%s at %s had the tables of the fence, and has them no more: %s", row.Name, data.Address(), sqldb.OneLine(err))
		return nil
	case err != nil && db.Denied(err):
		return d.rights(ctx, db, row.Name)
	case err != nil:
		return err
	}
	if err := d.c.Roster().Data().Check(ctx, db, row); errors.Is(err, center.ErrOtherData) {
		d.advise(condition.Data, "correct its URL in rota.yaml: workers refuse it", "%s at %s is %s", row.Name,
			data.Address(), err)
		return nil
	} else if err != nil {
		return err
	}
	if err := d.rights(ctx, db, row.Name); err != nil {
		return err
	}
	return d.epochs(ctx, db, data, row)
}

// createFence is what creates the tables.
const createFence = "rota migrate up -c rota.yaml creates them"

// settings reports what workers rely on, such as TLS and durability, unless it is as it should be.
func (d dataCheck) settings(ctx context.Context, db *sqldb.DB, name string) error {
	said := len(d.findings)
	if err := d.notes(ctx, db); err != nil {
		return err
	}
	kept := slices.DeleteFunc(d.findings[said:], func(c condition.Condition) bool { return c.Status == condition.OK })
	for i := range kept {
		kept[i].Text, kept[i].Subject = name+": "+kept[i].Text, strings.TrimSpace(name+" "+kept[i].Subject)
	}
	d.findings = d.findings[:said+len(kept)]
	return nil
}

func (d dataCheck) rights(ctx context.Context, db *sqldb.DB, name string) error {
	lacking, err := lackingRights(ctx, db, dataNeeds)
	if err == nil {
		d.lacking(lacking, "in "+name+" this role")
	}
	return err
}

// epochs reports queues whose epochs the roster does not know, or else what is fenced.
func (d dataCheck) epochs(ctx context.Context, db *sqldb.DB, data *center.Data, row roster.DataRow) error {
	fenced, err := d.c.Roster().Data().FenceRows(ctx, db)
	if err != nil {
		return err
	}
	ahead, err := d.c.Roster().Data().Ahead(ctx, fenced)
	if err != nil {
		return err
	}
	var list []string
	for _, a := range ahead {
		list = append(list, aheadText(a))
	}
	d.list(condition.DataAhead, row.Name+" is ahead of the roster, which has lost history", list)
	text := "no worker has used it yet"
	if len(fenced) > 0 {
		now, err := db.Clock(ctx)
		if err != nil {
			return err
		}
		last := slices.MaxFunc(fenced, func(a, b roster.FenceRow) int { return a.RaisedAt.Compare(b.RaisedAt) })
		text = fmt.Sprintf("%s fenced, an epoch last rose %s ago", human.Count(len(fenced), "queue is", "queues are"),
			human.Age(now.Sub(last.RaisedAt).Seconds()))
	}
	d.ok(condition.Data, "%s at %s: %s", row.Name, data.Address(), text)
	return nil
}

// aheadText says by how much a row is ahead.
func aheadText(a roster.AheadRow) string {
	return fmt.Sprintf("queue %s of %s (epoch %d of %s, in the roster %d)", escape.Name(a.QueueID), a.TaskType, a.Epoch,
		ops.ServerName(a.Server), a.RosterEpoch)
}
