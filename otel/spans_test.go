package rotaotel_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/manager"
)

// spanID names a span in the output of the exporter.
type spanID struct{ TraceID, SpanID string }

// exported is what the tests read of a span in the output of the exporter.
type exported struct {
	Name        string
	SpanContext spanID
	Parent      spanID
	Links       []struct{ SpanContext spanID }
	Attributes  []struct {
		Key   string
		Value struct{ Value any }
	}
}

// printSpans prints the names of the spans in alphabetical order, with the spans that they lead to, and some attributes.
func printSpans(written io.Reader) {
	var spans []exported
	names := map[spanID]string{}
	for d := json.NewDecoder(written); d.More(); {
		var s exported
		if err := d.Decode(&s); err != nil {
			log.Fatal(err)
		}
		spans = append(spans, s)
		names[s.SpanContext] = s.Name
	}
	var lines []string
	for _, s := range spans {
		line := s.Name
		if parent := names[s.Parent]; parent != "" {
			line += ", child of " + parent
		}
		for _, l := range s.Links {
			line += ", linked to " + names[l.SpanContext]
		}
		for _, a := range s.Attributes {
			switch a.Key {
			case "rota.items", "rota.outcome", "rota.run_state", "rota.moves":
				line += fmt.Sprintf(", %s %v", a.Key, a.Value.Value)
			}
		}
		if !strings.HasPrefix(line, "rota hand-over") && line != "rota plan settle, rota.moves 0" {
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	fmt.Println(strings.Join(lines, "\n"))
}

// joined returns a channel that is closed when a manager is ready.
func joined(m *manager.Manager) <-chan struct{} {
	ready := make(chan struct{})
	go func() {
		for m.Ready() != nil {
			time.Sleep(10 * time.Millisecond)
		}
		close(ready)
	}()
	return ready
}
