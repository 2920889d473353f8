package ops

import (
	"context"
	"fmt"

	"github.com/dutyrota/rota/runs"
)

// FireTrigger makes a run of a trigger now.
type FireTrigger struct {
	Trigger string `arg:"NAME" of:"trigger" form:"trigger" json:"-"`
}

var fireTrigger = verb[FireTrigger](Verb{
	Name: "trigger fire", Right: RightOperate,
	Short: "Make a run of a trigger now and print its id",
	Long: `Make a run of a trigger now, whatever its slots and its status, and print its
id. The slots do not change. The trigger's overlap applies: if another run is
open and the new one is SKIPPED, the exit code is 1.`,
	Example: `  rota trigger fire nightly
  rota run wait $(rota trigger fire nightly)`,
})

// Prepare implements Operation.
func (a FireTrigger) Prepare(ctx context.Context, c *Client) (*Change, error) {
	return triggerChange(ctx, c, a.Trigger, Change{
		Title: "Fire",
		Says: []string{
			"It makes a run now, in addition to its slots. If it skips slots while a run is open, and one is open, the run " +
				"ends at once as SKIPPED.",
		},
	}, "fired", "", func(ctx context.Context, triggers *runs.Triggers, actor string) (Done, error) {
		id, err := triggers.Fire(ctx, a.Trigger, actor)
		return Done{ID: id, Text: "it has made run " + id}, err
	})
}

// PauseTrigger stops a trigger.
type PauseTrigger struct {
	Trigger string `arg:"NAME" of:"trigger" form:"trigger" json:"-"`
}

var pauseTrigger = verb[PauseTrigger](Verb{
	Name: "trigger pause", Right: RightOperate,
	Short: "Pause a trigger; it misses its slots",
	Long: `Pause a trigger. When it is resumed, its misfire says which of the missed slots
fire. Open runs continue.`,
	Example: "  rota trigger pause nightly",
})

// Prepare implements Operation.
func (a PauseTrigger) Prepare(ctx context.Context, c *Client) (*Change, error) {
	return triggerChange(ctx, c, a.Trigger, Change{
		Title: "Pause", Says: []string{"It misses its slots. After a resume its misfire policy decides about them."},
	}, "paused", "it misses its slots", func(ctx context.Context, triggers *runs.Triggers, actor string) (Done, error) {
		return Done{}, triggers.SetPaused(ctx, a.Trigger, true, actor)
	})
}

// ResumeTrigger ends the pause of a trigger.
type ResumeTrigger struct {
	Trigger string `arg:"NAME" of:"trigger" form:"trigger" json:"-"`
}

var resumeTrigger = verb[ResumeTrigger](Verb{
	Name: "trigger resume", Right: RightOperate,
	Short: "Resume a paused trigger",
	Long: `Resume a paused trigger, or a trigger in ERROR after its row was corrected. Its
misfire says which of the missed slots fire.`,
	Example: "  rota trigger resume nightly",
})

// Prepare implements Operation.
func (a ResumeTrigger) Prepare(ctx context.Context, c *Client) (*Change, error) {
	return triggerChange(ctx, c, a.Trigger, Change{
		Title: "Resume", Says: []string{"It fires its slots again. Its misfire policy decides about those that it has missed."},
	}, "resumed", "", func(ctx context.Context, triggers *runs.Triggers, actor string) (Done, error) {
		return Done{}, triggers.SetPaused(ctx, a.Trigger, false, actor)
	})
}

// DeleteTrigger deletes a trigger.
type DeleteTrigger struct {
	Trigger string `arg:"NAME" of:"trigger" form:"trigger" json:"-"`
}

var deleteTrigger = verb[DeleteTrigger](Verb{
	Name: "trigger delete", Right: RightChange, Asks: true,
	Short: "Delete a trigger; its runs stay",
	Long: `Delete a trigger. Its runs stay. A later trigger of the same name fires none of
its slots again.`,
	Example: "  rota trigger delete nightly\n  rota trigger delete nightly --yes",
})

// Prepare implements Operation.
func (a DeleteTrigger) Prepare(ctx context.Context, c *Client) (*Change, error) {
	change, err := triggerChange(ctx, c, a.Trigger, Change{
		Title: "Delete", Says: []string{"It makes no more runs. The runs that it has made stay."},
	}, "deleted", "", func(ctx context.Context, triggers *runs.Triggers, actor string) (Done, error) {
		return Done{}, triggers.Delete(ctx, a.Trigger, actor)
	})
	if err == nil {
		change.Loses = fmt.Sprintf("delete trigger %s, which starts runs of %s", inEnvironment(c, a.Trigger), change.TaskTypes[0])
	}
	return change, err
}

// triggerChange completes a change of a trigger, which must exist. do gets the triggers that refuse to change it if an
// operator has changed it meanwhile.
func triggerChange(ctx context.Context, c *Client, name string, change Change, past, effect string,
	do func(context.Context, *runs.Triggers, string) (Done, error),
) (*Change, error) {
	if name == "" {
		return nil, missing("the trigger")
	}
	t, err := findTrigger(ctx, c, name)
	if err == nil && t.Name == "" {
		err = fmt.Errorf("find trigger %s in own_sign %s: %w", name, c.OwnSign(), runs.ErrUnknownTrigger)
	}
	if err != nil {
		return nil, err
	}
	change.Title += " trigger " + t.Name
	change.TaskTypes, change.Version = []string{t.Target}, fmt.Sprint(t.Version)
	change.Objects = []Object{{Name: inEnvironment(c, t.Name), Past: past, Effect: effect, do: func(ctx context.Context, actor string) (Done, error) {
		return do(ctx, c.runs.Triggers.IfStill(t.Trigger), actor)
	}}}
	return &change, nil
}

// findTrigger returns the trigger with a name, or a record without a name if there is none.
func findTrigger(ctx context.Context, c *Client, name string) (runs.TriggerRecord, error) {
	if name == "" {
		return runs.TriggerRecord{}, nil
	}
	list, err := c.Triggers().List(ctx, runs.TriggerFilter{Name: name})
	if err != nil || len(list) == 0 {
		return runs.TriggerRecord{}, err
	}
	return list[0], nil
}
