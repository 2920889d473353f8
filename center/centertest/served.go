package centertest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/schema"
)

// The servers of Served.
const (
	Web1 = "web1:1:00000001"
	Web2 = "web2:2:00000002"
)

// Served returns a Center whose task type settle has four queues and the servers Web1 and Web2. The task type regions
// has two named queues and no server.
func Served(t *testing.T, url string) *center.Center {
	t.Helper()
	c := Open(t, url, center.Options{})
	Define(t, c, "settle", center.Settings{Queues: 4, ExecuteNumber: 10})
	Define(t, c, "regions", center.Settings{QueueNames: []string{"north", "south"}})
	for _, uuid := range []string{Web1, Web2} {
		host, _, _ := strings.Cut(uuid, ":")
		_, err := c.Roster().Register(t.Context(), roster.ServerInfo{
			UUID: uuid, TaskType: "settle", Host: host, PID: 1, JudgeDeadInterval: time.Hour,
		})
		if err == nil {
			_, err = c.Roster().Planner("settle", uuid).Rebalance(t.Context(), roster.RebalanceOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// EnterData makes the owner of queue 0 of settle begin with it in a data database.
func EnterData(t *testing.T, c *center.Center, d *center.Data) {
	t.Helper()
	q, err := ops.New(c).Queues().List(t.Context(), ops.QueueFilter{TaskType: "settle"})
	if err == nil {
		_, err = d.Enter(t.Context(), center.Entry{
			TaskType: "settle", Server: *q[0].CurServer, Queue: center.QueueEpoch{ID: "0", Epoch: q[0].Epoch},
		})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// AddUser creates a user without rights on the database server of the owner, and drops it at the end of the test: other
// tests share the server. It returns the name of the user, and the URL of the owner's database for the user.
func AddUser(t *testing.T, owner *center.Center, ownerURL, role string) (name, userURL string) {
	t.Helper()
	u, err := url.Parse(ownerURL)
	if err != nil {
		t.Fatal(err)
	}
	name = fmt.Sprintf("%s_%d", role, rand.Uint32())
	create, drop := "CREATE USER "+name+" IDENTIFIED BY 'secret'", []string{"DROP USER " + name}
	if owner.Dialect() == schema.Postgres {
		create = "CREATE ROLE " + name + " LOGIN PASSWORD 'secret'"
		drop = []string{"DROP OWNED BY " + name, "DROP ROLE " + name}
	}
	Exec(t, owner, create)
	t.Cleanup(func() {
		for _, s := range drop {
			if _, err := owner.DB().ExecContext(context.WithoutCancel(t.Context()), s); err != nil { // it has ended by now
				t.Errorf("%s: %v", s, err)
			}
		}
	})
	u.User = url.UserPassword(name, "secret")
	return name, u.String()
}
