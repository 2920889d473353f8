package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
)

func newTopCommand() *cobra.Command {
	o := output{watch: 2 * time.Second}
	var once bool
	cmd := &cobra.Command{
		Use:   "top [TASK]",
		Short: "See task types and servers at work, again and again",
		Long: `See task types and servers at work, again and again until SIGINT; with --once or
into a pipe with --watch=10s, as often as you want.`,
		Example: `  rota top
  rota top settle --watch=500ms
  rota top --once`,
		Args:              arguments("[TASK]"),
		ValidArgsFunction: complete(taskNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("watch") {
				o.watch = 2 * time.Second
			}
			if once {
				o.watch = 0
			}
			t := &top{}
			return show(cmd, o, func(ctx context.Context, c *center.Center) (reply, error) {
				return t.ask(ctx, c, first(args))
			})
		},
	}
	addRosterFlags(cmd)
	addOutputFlags(cmd, &o, true)
	cmd.Flags().BoolVar(&once, "once", false, "show it once")
	return cmd
}

// top keeps what it has seen, to tell rates.
type top struct {
	at   time.Time
	done map[string]int64 // by uuid
}

// busy is a server and how fast it was since it was last looked at.
type busy struct {
	server
	rate float64
}

func (t *top) ask(ctx context.Context, c *center.Center, task string) (reply, error) {
	tasks, err := c.Tasks(ctx, task)
	if err != nil {
		return reply{}, err
	}
	servers, err := c.Servers(ctx, center.ServerFilter{TaskType: task})
	if err != nil {
		return reply{}, err
	}
	list := t.rates(servers)
	return reply{tasks, func(s screen) string {
		return render(s, tasks, taskFields) + "\n\n" + render(s, list, busyFields)
	}}, nil
}

// rates compares the counters with those of the last time. Heartbeats bring them, so that they are as old.
func (t *top) rates(servers []server) (list []busy) {
	done, now := map[string]int64{}, time.Time{}
	for _, s := range servers {
		b := busy{server: s}
		now, done[s.UUID] = s.Now, s.SuccessCount+s.FailureCount
		if before, ok := t.done[s.UUID]; ok && s.Now.After(t.at) {
			b.rate = float64(done[s.UUID]-before) / s.Now.Sub(t.at).Seconds()
		}
		list = append(list, b)
	}
	t.at, t.done = now, done
	return list
}

var busyFields = []field[busy]{
	{title: "SERVER", text: func(b busy) string { return b.UUID }, uuid: true},
	{title: "TASK", text: func(b busy) string { return b.TaskType }},
	{title: "STATE", text: func(b busy) string { return stateOf(b.server) }, color: byMeaning[busy]},
	{title: "BEAT", text: func(b busy) string { return age(&b.HeartbeatAge) }, right: true},
	{title: "QUEUES", text: func(b busy) string { return number(b.Queues) }, right: true},
	{title: "IN HAND", text: func(b busy) string { return number(b.InHand) }, right: true},
	{title: "OLDEST", text: func(b busy) string { return age(b.OldestInHandAge) }, right: true, spare: 1},
	{title: "ITEMS/S", text: func(b busy) string { return fmt.Sprintf("%.1f", b.rate) }, right: true},
	{title: "FAILED", text: func(b busy) string { return number(b.FailureCount) }, right: true, spare: 2},
	{title: "LAST ERROR", text: func(b busy) string { return lastError(b.server) }, spare: 1, free: true},
}
