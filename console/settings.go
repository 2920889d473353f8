package console

import (
	"context"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

// settingRow is a setting of a task type.
type settingRow struct {
	Name, Value, Default string
	Given                []givenSetting // of the programs of servers that give another value
}

// givenSetting is the value of a setting that servers were started with.
type givenSetting struct {
	Value   string
	Servers []string
}

// settingsOf returns the settings of a task type: the row, which is in force, and what the programs of its servers
// give.
func (v *viewer) settingsOf(ctx context.Context, taskType string, servers []ops.ServerRecord) (rows []settingRow) {
	s := v.rowOf(ctx, taskType)
	diffs := make([][]runs.Difference, len(servers))
	for i, server := range servers {
		diffs[i] = s.DiffersFrom(server.GivenSettings)
	}
	defaults := center.Settings{}.Records()
	for i, r := range s.Records() {
		row := settingRow{Name: r.Name, Value: r.Text, Default: defaults[i].Text}
		for j, server := range servers {
			for _, d := range diffs[j] {
				if d.Name == r.Name {
					row.give(d.Given, server.UUID)
				}
			}
		}
		rows = append(rows, row)
	}
	return rows
}

func (r *settingRow) give(value, uuid string) {
	for i := range r.Given {
		if r.Given[i].Value == value {
			r.Given[i].Servers = append(r.Given[i].Servers, uuid)
			return
		}
	}
	r.Given = append(r.Given, givenSetting{value, []string{uuid}})
}
