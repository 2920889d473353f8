package main

import (
	"context"

	"github.com/dutyrota/rota/center"
)

// hostNames returns the hosts of the task type's servers, each once. The empty
// task type stands for all.
func hostNames(ctx context.Context, c *center.Center, taskType string) (hosts []string, err error) {
	servers, err := c.Servers().List(ctx, center.ServerFilter{TaskType: taskType})
	seen := map[string]bool{}
	for _, s := range servers {
		if !seen[s.HostName] {
			seen[s.HostName] = true
			hosts = append(hosts, s.HostName)
		}
	}
	return hosts, err
}
