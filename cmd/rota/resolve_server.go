package main

import (
	"context"

	"github.com/dutyrota/rota/ops"
)

// hostNames returns the hosts of the task type's servers, each once. The empty
// task type stands for all.
func hostNames(ctx context.Context, c *ops.Client, taskType string) (hosts []string, err error) {
	servers, err := c.Servers().List(ctx, ops.ServerFilter{TaskType: taskType})
	seen := map[string]bool{}
	for _, s := range servers {
		if !seen[s.HostName] {
			seen[s.HostName] = true
			hosts = append(hosts, s.HostName)
		}
	}
	return hosts, err
}
