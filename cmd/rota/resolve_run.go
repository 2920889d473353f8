package main

import (
	"context"

	"github.com/dutyrota/rota/center"
)

// resolveRunIDs resolves several names as Runs.Find does.
func resolveRunIDs(ctx context.Context, c *center.Center, names []string) (ids []string, err error) {
	for _, name := range names {
		r, err := c.Runs().Find(ctx, name)
		if err != nil {
			return nil, err
		}
		ids = append(ids, r.ID)
	}
	return ids, nil
}
