package manager

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/processor"
)

// unknownVersion makes the configurer read the settings after the first heartbeat.
const unknownVersion = -2

// rejectedSettings says why and since when the settings in the row are not in force.
type rejectedSettings struct {
	text string
	at   time.Time
}

// configurer applies what an operator has changed: the settings of the task type, and its failed items.
type configurer struct {
	*base
	window   *permitWindow
	rejected *atomic.Pointer[rejectedSettings]

	settingsVersion int64 // of the settings in force
	itemVersion     int64 // of the failed items that the processor knows
}

// follow applies the settings if a heartbeat's reply says that they have changed.
func (c *configurer) follow(ctx context.Context, p roster.HeartbeatReply) error {
	if p.SettingsVersion == c.settingsVersion || p.SettingsVersion < 0 {
		return nil
	}
	return c.apply(ctx, p.SettingsVersion)
}

// followItems makes the processor load its failed items again if a heartbeat's reply says that they have changed.
func (c *configurer) followItems(p roster.HeartbeatReply) {
	if p.ItemVersion != c.itemVersion {
		c.itemVersion = p.ItemVersion
		c.proc.Reload()
	}
}

// apply reads the settings from the row and applies them. If they break a rule, the last good settings stay in force.
func (c *configurer) apply(ctx context.Context, version int64) error {
	ctx, cancel := c.withTimeout(ctx)
	defer cancel()
	row, err := c.roster.Tasks().Settings(ctx, c.taskType)
	if err != nil {
		return err
	}
	first := c.settingsVersion == unknownVersion
	c.settingsVersion = version
	err = row.Validate()
	if err == nil && row.Mode != c.settings.Mode && !first {
		err = fmt.Errorf("mode (%s) takes effect when the worker starts again: it works in mode %s", row.Mode, c.settings.Mode)
	}
	if err == nil {
		err = c.proc.Configure(processorSettings(row))
	}
	if err != nil {
		c.log.WithError(err).Error("settings in schedule_task_type rejected")
		c.rejected.Store(&rejectedSettings{"settings rejected: " + err.Error(), time.Now()})
		return nil
	}
	c.rejected.Store(nil)
	// The other servers know the intervals from this server's row, and the mode of a process never changes. Both stay.
	row.Mode = c.settings.Mode
	row.HeartbeatInterval, row.JudgeDeadInterval = c.settings.HeartbeatInterval, c.settings.JudgeDeadInterval
	*c.settings = row
	c.window.reset()
	if !first {
		c.log.Info("settings in schedule_task_type applied")
	}
	return nil
}

func processorSettings(s Settings) processor.Settings {
	return processor.Settings{
		ThreadNumber: s.ThreadNumber, FetchNumber: s.FetchNumber, ExecuteNumber: s.ExecuteNumber,
		SleepTimeNoData: s.SleepTimeNoData, SleepTimeInterval: s.SleepTimeInterval,
		Runs: s.Mode == center.ModeRun, NotSleep: s.ProcessorType == center.ProcessorNotSleep, RatePerSecond: s.RatePerSecond, BatchTimeout: s.BatchTimeout,
		Retry: s.ItemRetry, RetryMax: s.ItemRetryMax, ItemMaxAttempts: s.ItemMaxAttempts, Parameter: s.TaskParameter,
	}
}
