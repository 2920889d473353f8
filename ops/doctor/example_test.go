package doctor_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/sqlite"
	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/ops/doctor"
)

// A screen shows what is wrong, and renews it each time that it is drawn.
func Example() {
	ctx := context.Background()
	roster, err := center.Open(ctx, sqlite.URL("sqlite::memory:"), center.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer roster.Close()
	c := ops.New(roster)

	judged := doctor.Judge(ctx, c, "", doctor.Judgement{}, doctor.JudgeEvery)
	fmt.Println(judged.Verdict(time.Now()))

	if _, err := c.Tasks().Define(ctx, "settle", center.Settings{Queues: 4}); err != nil {
		log.Fatal(err)
	}
	judged = doctor.Judge(ctx, c, "", judged, 0) // what was found before the task type is old
	fmt.Println(judged.Verdict(time.Now()))
	for _, f := range judged.Of("settle").Findings {
		if f.Status == condition.Problem {
			fmt.Println(f.TaskType, f.Kind, f.Text)
		}
	}
	// Output:
	// No task type has been registered
	// 1 problem
	// settle UNSERVED no worker is registered
}
