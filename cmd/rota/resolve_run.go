package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/dutyrota/rota/center"
)

var (
	errNoRunOrTask = errors.New("neither a run nor a task type has this name")
	errNoRunYet    = errors.New("the task type has had no run")
)

// resolveRun returns the run with the given id, or the newest run of the task
// type with the given name. It returns errNoRunOrTask if there is neither, and
// errNoRunYet if the task type has had no run.
func resolveRun(ctx context.Context, c *center.Center, name string) (center.RunRecord, error) {
	r, found, err := readRun(ctx, c, name)
	if err != nil || found {
		return r, err
	}
	r, err = c.Engine().LatestRun(ctx, name)
	switch {
	case errors.Is(err, center.ErrUnknownTask):
		err = fmt.Errorf("find run %s in own_sign %s: %w", name, c.OwnSign(), errNoRunOrTask)
	case errors.Is(err, center.ErrUnknownRun):
		err = fmt.Errorf("find the newest run of %s$%s: %w", name, c.OwnSign(), errNoRunYet)
	}
	return r, err
}

// readRun returns the run with the given id, and whether there is one.
func readRun(ctx context.Context, c *center.Center, id string) (r center.RunRecord, found bool, err error) {
	list, err := c.Engine().RunRecords(ctx, center.RunFilter{RunID: id}, 1)
	if err != nil || len(list) == 0 {
		return r, false, err
	}
	return list[0], true, nil
}

// resolveRunIDs resolves several names as resolveRun does.
func resolveRunIDs(ctx context.Context, c *center.Center, names []string) (ids []string, err error) {
	for _, name := range names {
		r, err := resolveRun(ctx, c, name)
		if err != nil {
			return nil, err
		}
		ids = append(ids, r.ID)
	}
	return ids, nil
}
