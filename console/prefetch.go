package console

import (
	"context"
	"sync"

	"github.com/dutyrota/rota/center"
)

// needs are reads that a page will ask for.
type needs = []func(*view, context.Context)

// The reads that take long in a large roster. A page asks for them again when it needs them, and waits for the same query.
var (
	withRuns     = func(v *view, ctx context.Context) { _, _ = v.latestRuns(ctx, center.RunFilter{}) }
	withQueues   = func(v *view, ctx context.Context) { _, _ = v.queuesOf(ctx, v.param("task")) }
	withSettings = func(v *view, ctx context.Context) { _, _ = v.settingsOf(ctx, v.param("task"), nil) }
)

// prefetch begins what the page and its top read, all at the same time: the first viewer of a large roster would wait for
// one query after the other. The returned function waits for the end.
func (v *view) prefetch(ctx context.Context, p page) (wait func()) {
	if formatOf(v.request) != formatHTML {
		return func() {}
	}
	var all sync.WaitGroup
	for _, read := range append(needs{
		func(v *view, ctx context.Context) { _, _ = v.tasks(ctx) },
		func(v *view, ctx context.Context) { _, _ = v.allServers(ctx) },
		func(v *view, ctx context.Context) { _, _ = v.allTriggers(ctx) },
		func(v *view, ctx context.Context) { _, _ = v.ownSigns(ctx) },
	}, p.needs...) {
		all.Go(func() { read(&view{console: v.console, request: v.request}, ctx) })
	}
	return all.Wait
}
