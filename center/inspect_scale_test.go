package center_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/testdb"
)

// question is asked in so many statements at the most.
type question struct {
	most int
	ask  func(ctx context.Context) error
}

// questions are what an operator's commands ask, and the most statements that each may take, however many
// servers and queues there are. Those of Examine are mostly the rights that it tries.
func questions(c *center.Center) map[string]question {
	return map[string]question{
		"tasks":   {1, func(ctx context.Context) error { _, err := c.Tasks(ctx, ""); return err }},
		"queues":  {2, func(ctx context.Context) error { _, err := c.Queues(ctx, center.QueueFilter{}); return err }},
		"servers": {1, func(ctx context.Context) error { _, err := c.Servers(ctx, center.ServerFilter{}); return err }},
		"events":  {1, func(ctx context.Context) error { _, err := c.Events(ctx, center.EventFilter{}, 100); return err }},
		"items":   {1, func(ctx context.Context) error { _, err := c.Items(ctx, center.ItemFilter{}, 100); return err }},
		"gone":    {1, func(ctx context.Context) error { _, err := c.GoneServers(ctx, center.ServerFilter{}, 100); return err }},
		"plan": {6, func(ctx context.Context) error {
			p, err := c.PreviewPlan(ctx, "settle", center.Scenario{Add: 1})
			if err == nil && p.Moved() != manyQueues/(manyServers+1) {
				err = errors.New("it is not the minimum")
			}
			return err
		}},
		"doctor": {40, func(ctx context.Context) error { _, err := c.Examine(ctx, ""); return err }},
	}
}

// With 1,000 servers and 10,000 queues, every question is a statement or two.
func TestQuestionsAreFewStatements(t *testing.T) {
	url, proxy := testdb.Through(t, testdb.URL(t, testdb.Postgres))
	m := newMany(t, centertest.Open(t, url, center.Options{}))
	for name, q := range questions(m.c) {
		sent := statementsOf(proxy.Listen(func() {
			if err := q.ask(t.Context()); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}))
		if len(sent) == 0 || len(sent) > q.most {
			t.Errorf("%s takes %d statements, at most %d are allowed:\n%s", name, len(sent), q.most, strings.Join(sent, "\n"))
		}
	}
}

// BenchmarkQuestions is what each question costs with 1,000 servers and 10,000 queues.
func BenchmarkQuestions(b *testing.B) {
	for _, kind := range []string{testdb.Postgres, testdb.MySQL, testdb.SQLite} {
		m := newMany(b, centertest.Open(b, testdb.URL(b, kind), center.Options{}))
		for name, q := range questions(m.c) {
			b.Run(name+"/"+kind, func(b *testing.B) {
				for b.Loop() {
					if err := q.ask(b.Context()); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
