package roster_test

import (
	"slices"
	"testing"
	"time"

	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/testdb"
)

// P13: a reservation that ends during a plan counts for that plan, and the next plan is due at once.
func TestReservationEndsDuringAPlan(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		c := openTask(t, url, "settle", 2)
		for _, s := range []roster.ServerInfo{{UUID: web1, Name: "web1"}, {UUID: web2, Name: "web2"}} {
			s.TaskType, s.JudgeDeadInterval = "settle", time.Minute
			if _, err := c.Roster().Register(t.Context(), s); err != nil {
				t.Fatal(err)
			}
		}
		centertest.Exec(t, c, "UPDATE schedule_queue SET cur_server = '"+web1+"' WHERE queue_id = '0'")
		centertest.Exec(t, c, "UPDATE schedule_queue SET cur_server = '"+web2+"' WHERE queue_id = '1'")
		kept := roster.Reservation{Name: "web1", Within: time.Hour}
		for _, leave := range []func() error{
			func() error { return c.Roster().Server("settle", web1).Drain(t.Context(), kept) },
			func() error { return c.Roster().Server("settle", web1).Leave(t.Context(), nil, kept) },
		} {
			if err := leave(); err != nil {
				t.Fatal(err)
			}
		}
		rebalance := func(o roster.RebalanceOptions) {
			t.Helper()
			if _, err := c.Roster().Planner("settle", web2).Rebalance(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
		owners := func() (list []string) {
			t.Helper()
			for _, id := range []string{"0", "1"} {
				for _, uuid := range []string{web1, web2} {
					if centertest.CountRows(t, c, "SELECT 1 FROM schedule_queue WHERE queue_id = '"+id+"'"+
						" AND cur_server = '"+uuid+"'") > 0 {
						list = append(list, uuid)
					}
				}
			}
			return list
		}
		// The reservation has ended, after a plan that is under way has read the clock.
		centertest.Exec(t, c, "UPDATE schedule_queue SET reserved_until = gmt_modified WHERE queue_id = '0'")
		if err := c.Roster().PlanAsOf(t.Context(), "settle", web2, 10*time.Minute); err != nil {
			t.Fatal(err)
		}
		if got := owners(); !slices.Equal(got, []string{web2}) {
			t.Fatalf("the plan during which the reservation ended left the queues with %v", got)
		}
		rebalance(roster.RebalanceOptions{}) // only if a plan is due
		if got := owners(); !slices.Equal(got, []string{web2, web2}) {
			t.Fatalf("no plan was due after it: the queues are with %v", got)
		}
	})
}
