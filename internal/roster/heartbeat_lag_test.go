package roster_test

import (
	"testing"
	"time"

	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/testdb"
)

// F7: on a cluster, a heartbeat that reaches a node without the server's row fails as long as the store still has the
// row. The other node is another database here.
func TestHeartbeatOnANodeThatLags(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		c := openTask(t, url, "settle", 1)
		r := c.Roster()
		if _, err := r.Register(t.Context(), roster.ServerInfo{UUID: "A", TaskType: "settle", HeartbeatToken: "x", JudgeDeadInterval: time.Minute}); err != nil {
			t.Fatal(err)
		}
		behind := openTask(t, testdb.URL(t, string(c.Dialect())), "settle", 1)
		heart := r.DB.Heartbeat
		r.DB.Heartbeat = behind.Roster().DB.Heartbeat
		t.Cleanup(func() { r.DB.Heartbeat = heart })
		gone := func(token string) (bool, error) {
			replies, err := r.SendHeartbeat(t.Context(), roster.Heartbeat{Token: "y", OldTokens: []string{token}, Servers: []roster.ServerReport{{UUID: "A", TaskType: "settle", State: roster.StateServing}}})
			return len(replies) == 0, err
		}
		if gone, err := gone("x"); err != nil || !gone {
			t.Errorf("without a cluster: gone %t, error %v, want a server that is gone", gone, err)
		}
		r.WriteFence = true
		if _, err := gone("x"); err == nil {
			t.Error("the store has the row: no error, want one")
		}
		if gone, err := gone("z"); err != nil || !gone {
			t.Errorf("the row belongs to another process: gone %t, error %v, want a server that is gone", gone, err)
		}
		centertest.Exec(t, c, "DELETE FROM schedule_server")
		if gone, err := gone("x"); err != nil || !gone {
			t.Errorf("the store has no row: gone %t, error %v, want a server that is gone", gone, err)
		}
	})
}
