package plan_test

import (
	"fmt"
	"time"

	"github.com/dutyrota/rota/internal/plan"
)

// Server B joins while A owns five queues. The plan requests two of them for B, and A hands them over. No other queue
// moves.
func ExamplePlan() {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	queues := []plan.Queue{{ID: "0", Owner: "A"}, {ID: "1", Owner: "A"}, {ID: "2", Owner: "A"}, {ID: "3", Owner: "A"}, {ID: "4", Owner: "A"}}
	servers := []plan.Server{
		{UUID: "A", RegisterTime: start, Eligible: true},
		{UUID: "B", RegisterTime: start.Add(time.Hour), Eligible: true},
	}
	for _, c := range plan.Plan(queues, servers, plan.Limits{}).Changes {
		fmt.Printf("queue %s: owner %s, requested by %s\n", c.QueueID, c.Owner, c.Requester)
	}
	// Output:
	// queue 1: owner A, requested by B
	// queue 3: owner A, requested by B
}
