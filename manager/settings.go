package manager

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/dutyrota/rota/internal/fit"
	"github.com/dutyrota/rota/ops"
)

// unknownVersion makes the configurer read the settings after the first heartbeat.
const unknownVersion = -2

// rejectedSettings says why and since when the settings in the row are not in force.
type rejectedSettings struct {
	text string
	at   time.Time
}

// configurer applies the settings of the task type that an operator has changed.
type configurer struct {
	*base
	rejected *atomic.Pointer[rejectedSettings]
	adopted  *atomic.Int64 // how often settings that have changed were adopted

	settingsVersion int64 // of the settings in force
}

// read returns the job that reads the settings again, which have this version or a newer one.
func (c *configurer) read(version int64) *job {
	var row Settings
	return &job{
		name: "read the settings",
		call: func(ctx context.Context) (err error) {
			row, err = ops.New(c.roster).Tasks().Settings(ctx, c.taskType)
			return err
		},
		then: func(ctx context.Context, err error) (more bool) {
			if err == nil {
				c.apply(ctx, row, version)
			}
			return err == nil
		},
	}
}

// apply applies settings that were changed in the row. It rejects bad ones: the last good ones stay in force.
func (c *configurer) apply(ctx context.Context, row Settings, version int64) {
	first := c.settingsVersion == unknownVersion
	c.settingsVersion = version
	c.view.invalidate() // the version also rises with the limits of a queue, which hold whatever the settings are
	err := fit.Check(c.proc.Capabilities(), *c.settings, row)
	if err == nil {
		err = c.proc.Configure(fit.Processor(row))
	}
	if err != nil {
		c.log.LogAttrs(ctx, slog.LevelError, "settings in schedule_task_type rejected", slog.Any("error", err))
		c.rejected.Store(&rejectedSettings{"settings rejected: " + err.Error(), time.Now()})
		return
	}
	c.rejected.Store(nil)
	if i := intervalsOf(&row); i != intervalsOf(c.settings) {
		c.reg.wanted.Store(&i)
		c.heartbeater.soon()
	}
	*c.settings = row
	if !first {
		c.adopted.Add(1)
		c.log.LogAttrs(ctx, slog.LevelInfo, "settings in schedule_task_type applied")
	}
}
