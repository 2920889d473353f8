package console

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/ops"
)

// dataLimit is how long the reading of all data databases may take. One that is away takes two seconds. As with the
// findings, a viewer does not wait for that.
const dataLimit = 3 * time.Second

// dataRow is a data database of a task type.
type dataRow struct{ ops.DataRecord }

// Mark returns the mark of the state.
func (d dataRow) Mark() mark {
	kind := map[string]string{
		ops.DataOK: "ok", ops.DataNew: "busy", condition.FenceWait.Name: "busy", condition.Unreachable.Name: "bad",
	}[d.State]
	return mark{kind, strings.ToLower(strings.ReplaceAll(d.State, "_", " "))}
}

// Bad reports whether the database cannot be used.
func (d dataRow) Bad() bool { return d.Mark().Kind == "bad" }

// Fenced returns how many queues are fenced there, if that is known.
func (d dataRow) Fenced() string {
	if d.Queues == nil {
		return ""
	}
	return fmt.Sprint(*d.Queues)
}

// dataOf returns the data databases of a task type. One that is not known yet is new.
func (v *viewer) dataOf(ctx context.Context, taskType string) (rows []dataRow) {
	names, _ := v.rowOf(ctx, taskType).Databases() // the findings have settings that are not valid
	if len(names) == 0 {
		return nil
	}
	p := v.cache.get(ctx, request{v.partKey("data"), v.life(), dataLimit, func(ctx context.Context) (any, error) {
		return v.client.DataDatabases().List(ctx)
	}}, min(diagnosisPatience, time.Until(v.until)))
	v.note("data", p)
	list, _ := p.value.([]ops.DataRecord)
	for _, name := range names {
		d := ops.DataRecord{Name: name, State: ops.DataNew, Reason: "it is being read"}
		if p.known() {
			d.Reason = ""
		}
		if i := slices.IndexFunc(list, func(r ops.DataRecord) bool { return r.Name == name }); i >= 0 {
			d = list[i]
		}
		rows = append(rows, dataRow{d})
	}
	return rows
}

// rowOf returns the settings of a task type that are in force.
func (v *viewer) rowOf(ctx context.Context, taskType string) center.Settings {
	return load(ctx, v, "settings\x00"+taskType, func(ctx context.Context) (center.Settings, error) {
		return v.client.Tasks().Settings(ctx, taskType)
	})
}
