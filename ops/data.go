package ops

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
)

// The states of a data database, beside the kinds of the alerts UNREACHABLE and FENCE_WAIT.
const (
	DataOK  = "OK"
	DataNew = "NEW" // no server has used it yet
)

// DataRecord is a data database: a row of schedule_data, or one that only this process has opened.
type DataRecord struct {
	OwnSign string `json:"own_sign"`
	Name    string `json:"name"`
	Address string `json:"address"` // URL without the password: of this process, or else of the worker that came first
	// State is OK, NEW, UNREACHABLE or FENCE_WAIT, as the servers say by their alerts. It is UNREACHABLE also if this
	// process has opened the database and cannot read it.
	State  string     `json:"state"`
	Since  *time.Time `json:"since"`  // of the alert; nil without one
	Reason string     `json:"reason"` // of the state; empty if it is OK
	// Of the rows of rota_fence. They are nil if this process has not opened the database, or cannot read it.
	Queues   *int64     `json:"queues"`    // that are fenced there
	RaisedAt *time.Time `json:"raised_at"` // when an epoch last rose there; nil also if none has
}

// alertsOfData is how many alerts of a kind List reads.
const alertsOfData = 500

// dataLook is how long List waits for a data database. A look at all of them takes no longer.
const dataLook = 2 * time.Second

// Data lists data databases (F11).
type Data struct{ c *Client }

// DataDatabases returns the bundle of data databases.
func (c *Client) DataDatabases() *Data { return &Data{c} }

// List lists the data databases that servers have used or this process has opened, by name.
func (d *Data) List(ctx context.Context) ([]DataRecord, error) {
	rows, err := d.c.roster.Data().Rows(ctx)
	if err != nil {
		return nil, err
	}
	alerts, err := d.alerts(ctx)
	if err != nil {
		return nil, err
	}
	list := d.known(rows)
	var all sync.WaitGroup
	for i := range list {
		all.Go(func() { d.look(ctx, &list[i]) })
	}
	all.Wait()
	for _, e := range alerts {
		for i := range list {
			if r := &list[i]; *e.Subject == r.Name && r.State != condition.Unreachable.Name {
				r.State, r.Since = *e.Alert, &e.EventTime
				r.Reason = strings.TrimPrefix(e.Reason, *e.Alert+": "+r.Name+": ")
			}
		}
	}
	return list, nil
}

// known returns the records of what the roster and this process know.
func (d *Data) known(rows []roster.DataRow) (list []DataRecord) {
	for _, row := range rows {
		r := DataRecord{OwnSign: d.c.ownSign, Name: row.Name, Address: row.Address, State: DataOK}
		if !row.Marked {
			r.State = DataNew
		}
		list = append(list, r)
	}
	for _, db := range d.c.AllData() {
		i := slices.IndexFunc(list, func(r DataRecord) bool { return r.Name == db.Name() })
		if i < 0 {
			i, list = len(list), append(list, DataRecord{OwnSign: d.c.ownSign, Name: db.Name(), State: DataNew})
		}
		list[i].Address = db.Address()
	}
	slices.SortFunc(list, func(a, b DataRecord) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// alerts returns the open alerts about data databases, UNREACHABLE before FENCE_WAIT, the oldest first. It reads each
// kind by itself, because there may be a FENCE_WAIT for each queue.
func (d *Data) alerts(ctx context.Context) (all []EventRecord, err error) {
	for _, kind := range []string{condition.Unreachable.Name, condition.FenceWait.Name} {
		list, err := d.c.Events().List(ctx, EventFilter{Kind: EventAlert, Open: true, alert: kind}, alertsOfData)
		if err != nil {
			return nil, err
		}
		all = append(all, slices.DeleteFunc(list, func(e EventRecord) bool { return e.Subject == nil })...)
	}
	return all, nil
}

// look reads what is fenced in a database, if this process has opened it.
func (d *Data) look(ctx context.Context, r *DataRecord) {
	db := d.c.Data(r.Name)
	if db == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, dataLook)
	defer cancel()
	rows, err := d.fenceRows(ctx, db)
	switch {
	case err == nil:
		r.Queues, r.RaisedAt = new(int64(len(rows))), lastRaised(rows)
	case r.State == DataOK:
		r.State, r.Reason = condition.Unreachable.Name, "from here: "+sqldb.JoinLines(err.Error())
	default:
		r.Reason = "from here: " + sqldb.JoinLines(err.Error())
	}
}

func (d *Data) fenceRows(ctx context.Context, db *center.Data) ([]roster.FenceRow, error) {
	pools, err := db.Reach(ctx)
	if err != nil {
		return nil, err
	}
	return d.c.roster.Data().FenceRows(ctx, pools)
}

// lastRaised returns when an epoch last rose; nil if none has.
func lastRaised(rows []roster.FenceRow) (at *time.Time) {
	for _, row := range rows {
		if at == nil || row.RaisedAt.After(*at) {
			at = &row.RaisedAt
		}
	}
	return at
}
