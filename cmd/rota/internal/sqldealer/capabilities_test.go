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
	for name, c := range map[string]struct {
		sql             config.SQLDealer
		keyed, cursored bool
	}{"plain": {plain, false, false}, "key": {withKey, true, false}, "cursor": {withCursor, true, true}} {
		d, err := newDealer(config.Task{Name: "settle", Settings: center.Settings{Queues: 2}, SQL: c.sql}, schema.SQLite)
		if err != nil {
			t.Fatal(err)
		}
		var dealer any = d.Use(nil)
		_, isKeyed := dealer.(processor.Keyed[Row])
		_, isCursored := dealer.(processor.Cursored[Row])
		if isKeyed != c.keyed || isCursored != c.cursored {
			t.Errorf("%s: keyed %t, cursored %t", name, isKeyed, isCursored)
		}
	}
}
