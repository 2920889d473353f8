package manager_test

import (
	"context"
	"fmt"
	"log"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/sqlite"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/ops"
)

// A deployment applies the settings once, beside its migrations. Then it starts the workers.
func ExampleApply() {
	ctx := context.Background()
	c, err := center.Open(ctx, sqlite.URL("sqlite::memory:"), center.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	// The settings as an earlier version of the program has made them.
	if _, err := ops.New(c).Tasks().Define(ctx, "settle", manager.Settings{Queues: 8, ExecuteNumber: 100}); err != nil {
		log.Fatal(err)
	}

	task := manager.Serve("settle", settle{c.DB()}, manager.Settings{Queues: 8, ExecuteNumber: 50})
	for _, apply := range []func(context.Context, *center.Center, ...manager.Task) (string, error){
		manager.ApplyDryRun, manager.Apply,
	} {
		text, err := apply(ctx, c, task)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(text)
	}
	// Output:
	// settle$BASE:
	//  SETTING         NOW  THEN
	//  execute_number  100  50
	// Workers of all environments adopt the settings with their next heartbeats.
	// settle$BASE: would be changed
	// settle$BASE:
	//  SETTING         NOW  THEN
	//  execute_number  100  50
	// Workers of all environments adopt the settings with their next heartbeats.
	// settle$BASE: changed
}
