package rostercmd

import (
	"bytes"
	"strings"
	"testing"

	"github.com/dutyrota/rota/cmd/rota/internal/cli"
	"github.com/dutyrota/rota/internal/escape"
	"github.com/dutyrota/rota/ops"
)

// event list --follow prints the events that are there, too.
func TestFollowedEventsAreEscaped(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	e := eventList{Output: cli.Output{Format: cli.Choice{Value: cli.FormatTable}}}
	const hostile = "=\x1b]0;x\x07"
	events := []ops.EventRecord{{TaskType: hostile, Kind: "JOINED" + hostile, Reason: hostile}}
	if err := e.print(&out, events, true); err != nil || escape.Lines(out.String()) != out.String() || !strings.Contains(out.String(), `\x1b]0;x`) {
		t.Errorf("%v, %q", err, out.String())
	}
}
