package runcmd

import (
	"fmt"
	"strings"

	"github.com/dutyrota/rota/cmd/rota/internal/cli"
	"github.com/dutyrota/rota/internal/human"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

// runLine says how far a run is, with its name.
func runLine(name string, r runs.Record, blocker string) string {
	return fmt.Sprintf("%s is %s: %s%s%s", name, r.DisplayState(), progressText(r), left(r), trouble(r, blocker))
}

// blockerSuffix says what keeps a run from making progress.
func blockerSuffix(r runs.Record, blocker string) string {
	switch {
	case blocker == "":
		return ""
	case r.Paused:
		return "; " + ops.CommandLines(r.OwnSign, "see rota run resume "+r.ID)
	}
	return "; " + strings.TrimPrefix(blocker, "it ")
}

// trouble is blockerSuffix, or else the last error of a queue that has not ended.
func trouble(r runs.Record, blocker string) string {
	if suffix := blockerSuffix(r, blocker); suffix != "" || r.Message == "" || r.Ended() {
		return suffix
	}
	return "; " + strings.TrimPrefix(r.Message, "it ")
}

// left says how much longer the run takes if its other queues need as long as those that have ended.
func left(r runs.Record) string {
	if r.Ended() || r.Paused {
		return ""
	}
	return cli.Left(r.Now.Sub(r.StartedAt), r.QueuesDone+r.QueuesFailed+r.QueuesCancelled, r.Queues())
}

// progressText returns the drained, failed and cancelled queues, the items and the duration.
func progressText(r runs.Record) string {
	if r.Queues() == 0 {
		return "not started"
	}
	parts := []string{fmt.Sprintf("%d of %s", r.QueuesDone, human.Count(r.Queues(), "queue", "queues"))}
	if r.QueuesFailed > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", r.QueuesFailed))
	}
	if r.QueuesCancelled > 0 {
		parts = append(parts, fmt.Sprintf("%d cancelled", r.QueuesCancelled))
	}
	items := human.Count(r.ItemsDone, "item", "items")
	if r.ItemsAtLeast {
		items = "at least " + items
	}
	parts = append(parts, items)
	if r.ItemsFailed > 0 {
		parts = append(parts, human.Count(r.ItemsFailed, "item", "items")+" failed")
	}
	return strings.Join(append(parts, runDuration(r)), ", ")
}
