package schema

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/internal/testdb"
)

// Columns reads the migrations as the databases do.
func TestColumnsAreThoseOfTheDatabase(t *testing.T) {
	testdb.Each(t, func(t *testing.T, url string) {
		TeachLater(t, own+2)
		db, d := migrated(t, url)
		read := map[string][]string{}
		for _, c := range readColumns(known.files) {
			read[c.Table] = append(read[c.Table], c.Name)
		}
		made := layout(t, db, d)
		for table := range made {
			if table == "schedule_assignment" || strings.HasPrefix(table, "schedule_schema_") {
				delete(made, table)
			}
		}
		if diff := cmp.Diff(made, read); diff != "" {
			t.Errorf("(-%s +Columns):\n%s", d, diff)
		}
	})
}

// Columns tells the kinds of columns apart, and which may be NULL.
func TestKindsOfColumns(t *testing.T) {
	t.Parallel()
	list := Columns()
	for _, want := range []Column{
		{"schedule_server", "uuid", Text, false, true},
		{"schedule_server", "witness", Text, true, false},
		{"schedule_server", "heartbeat_time", Time, false, false},
		{"schedule_server", "watching_since", Time, true, false},
		{"schedule_event", "event_id", Number, false, true},
		{"schedule_task_type", "rate_per_second", Fraction, false, false},
		{"schedule_run", "paused", Flag, false, false},
		{"schedule_run_item", "item_no", Number, false, true},
	} {
		if !slices.Contains(list, want) {
			t.Errorf("%+v is missing", want)
		}
	}
	if len(list) < 200 {
		t.Errorf("%d columns, want all", len(list))
	}
}
