package sqldealer

import (
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/config"
	"github.com/dutyrota/rota/processor"
	"github.com/dutyrota/rota/schema"
)

// A dealer has the capabilities that follow from its statements.
func TestCapabilities(t *testing.T) {
	plain := config.SQLDealer{Select: aSelect, ExecuteEach: "SELECT {{row.id}}"}
	withKey := config.SQLDealer{Select: aSelect, Execute: anUpdate, Key: []string{"id"}}
	withCursor := config.SQLDealer{Select: aCursor, Execute: anUpdate, Key: []string{"id"}, CursorStart: zero, CommitsInOrder: true}
	withAll := config.SQLDealer{
		Select:  "SELECT id FROM orders WHERE id > {{after}} AND {{index}} < {{total}} ORDER BY id LIMIT {{limit}}",
		Execute: anUpdate, Discard: anUpdate, Key: []string{"id"}, OrderKey: "customer", AfterStart: zero,
	}
	for name, c := range map[string]struct {
		sql  config.SQLDealer
		want processor.Capabilities
	}{
		"plain":  {plain, processor.Capabilities{}},
		"key":    {withKey, processor.Capabilities{Keyed: true}},
		"cursor": {withCursor, processor.Capabilities{Keyed: true, Cursored: true}},
		"all":    {withAll, processor.Capabilities{Keyed: true, Paged: true, Ordered: true, Discarder: true}},
	} {
		d, err := newDealer(config.Task{Name: "settle", Settings: center.Settings{Queues: 2}, SQL: c.sql}, schema.SQLite)
		if err != nil {
			t.Fatal(err)
		}
		if got := d.Capabilities(); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
