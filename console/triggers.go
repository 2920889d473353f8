package console

import (
	"context"

	"github.com/dutyrota/rota/center"
)

// triggersPage is the page of triggers.
type triggersPage struct {
	Rows []TriggerRow
}

// TriggerRow is a trigger in the list.
type TriggerRow struct {
	center.TriggerRecord
	Mark Mark
}

// allTriggers returns all triggers.
func (v *view) allTriggers(ctx context.Context) ([]center.TriggerRecord, error) {
	return load(ctx, v, "triggers", func(ctx context.Context) ([]center.TriggerRecord, error) {
		return v.center.Triggers().List(ctx, center.TriggerFilter{})
	})
}

// triggers makes the page of triggers.
func (v *view) triggers(ctx context.Context) error {
	list, err := v.allTriggers(ctx)
	if err != nil {
		return err
	}
	p := triggersPage{}
	for _, t := range list {
		p.Rows = append(p.Rows, TriggerRow{t, triggerMark(t)})
	}
	v.Title, v.Data, v.Records = "Triggers", p, list
	return nil
}

// triggerMark returns the condition of a trigger.
func triggerMark(t center.TriggerRecord) Mark {
	switch {
	case !t.MissedAt.IsZero():
		return Mark{"bad", "missed a slot"}
	case t.Status == center.TriggerActive:
		return Mark{"ok", "active"}
	case t.Status == center.TriggerPaused:
		return Mark{"off", "paused"}
	}
	return Mark{"wait", "done"}
}
