package ops_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
)

// The list has the states that the servers' alerts say, and what the databases say themselves.
func TestListDataDatabases(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		c := centertest.Served(t, testdb.URL(t, testdb.SQLite))
		orders, err := c.FenceIn("orders", anydb.URL(url))
		must(t, err)
		lists := func(when string, want ...string) {
			t.Helper()
			list, err := ops.New(c).DataDatabases().List(t.Context())
			must(t, err)
			var got []string
			for _, d := range list {
				queues := "-"
				if d.Queues != nil {
					queues = fmt.Sprint(*d.Queues)
				}
				got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %s %t %t %s", d.Name, d.State, queues, d.RaisedAt != nil, d.Since != nil, d.Reason)))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s:\n%s", when, diff)
			}
		}
		alert := func(a condition.Condition) {
			t.Helper()
			a.TaskType = "settle"
			_, err := c.Roster().Alert(t.Context(), a, time.Hour)
			must(t, err)
		}
		_, err = center.MigrateData(t.Context(), anydb.URL(url))
		must(t, err)
		lists("before the first use", "orders NEW 0 false false")
		centertest.EnterData(t, c, orders)
		lists("in use", "orders OK 1 true false")
		alert(condition.Condition{Kind: condition.FenceWait.Name, Subject: "orders", QueueID: "1", Text: "queue 1 is not worked"})
		lists("a queue waits", "orders FENCE_WAIT 1 true true queue 1 is not worked")
		alert(condition.Condition{Kind: condition.Unreachable.Name, Subject: "orders", Text: "no route"})
		lists("away for a worker", "orders UNREACHABLE 1 true true no route")
		_, err = c.FenceIn("away", anydb.URL("postgres://app:secret@127.0.0.1:1/shop"))
		must(t, err)
		lists("another one", "away NEW - false false from here: cannot connect: dial tcp 127.0.0.1:1: connect: connection refused",
			"orders UNREACHABLE 1 true true no route")
	})
}

// Each queue may have an alert of its own. They do not hide that its database is away.
func TestAlertsOfQueuesHideNoDatabase(t *testing.T) {
	t.Parallel()
	c := centertest.Served(t, testdb.URL(t, testdb.SQLite))
	_, err := c.FenceIn("orders", anydb.URL("sqlite:"+t.TempDir()+"/orders.db"))
	must(t, err)
	alert := func(kind condition.Kind, queue string) {
		_, err := c.Roster().Alert(t.Context(), condition.Condition{
			Kind: kind.Name, TaskType: "settle", Subject: "orders", QueueID: queue, Text: "no route",
		}, time.Hour)
		must(t, err)
	}
	alert(condition.Unreachable, "")
	for queue := range 500 {
		alert(condition.FenceWait, fmt.Sprint(queue))
	}
	list, err := ops.New(c).DataDatabases().List(t.Context())
	must(t, err)
	if len(list) != 1 || list[0].State != condition.Unreachable.Name {
		t.Errorf("got %+v, want one database, which is UNREACHABLE", list)
	}
}
