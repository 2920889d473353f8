package pgxtest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/testdb"
)

// listen receives notifications over pgx, for the field Listen of what postgres.Connector returns. A connection that
// does not answer a ping is lost: nothing else notices that its network is dead.
func listen(cfg *pgx.ConnConfig, pingEvery time.Duration) func(context.Context, string, func(), func(string)) error {
	return func(ctx context.Context, channel string, ready func(), got func(payload string)) error {
		conn, err := pgx.ConnectConfig(ctx, cfg)
		if err != nil {
			return err
		}
		defer func() {
			closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			_ = conn.Close(closing)
		}()
		if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{channel}.Sanitize()); err != nil {
			return err
		}
		ready()
		for {
			waiting, cancel := context.WithTimeout(ctx, pingEvery)
			n, err := conn.WaitForNotification(waiting)
			quiet := waiting.Err() != nil && ctx.Err() == nil
			cancel()
			switch {
			case n != nil:
				got(n.Payload)
			case quiet:
				if err := ping(ctx, conn, pingEvery); err != nil {
					return err
				}
			default:
				return err
			}
		}
	}
}

func ping(ctx context.Context, conn *pgx.Conn, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return conn.Ping(ctx)
}

// X9: a process whose pool is opened with pgx hears hints. It notices that its connection is lost, or its network dead,
// and connects again.
func TestHints(t *testing.T) {
	t.Parallel()
	raw, proxy := testdb.Through(t, testdb.URL(t, testdb.Postgres))
	c := centertest.Open(t, raw, center.Options{})
	if !c.CanListen() {
		t.Fatal("the pool over pgx cannot listen")
	}
	ctx, stop := context.WithCancel(t.Context())
	changes, heard := make(chan error, 100), make(chan center.Hint, 100)
	var listening sync.WaitGroup
	listening.Go(func() {
		if err := c.Listen(ctx, nil, func(err error) { changes <- err }, func(h center.Hint) { heard <- h }); err != nil {
			t.Error(err)
		}
	})
	defer listening.Wait()
	defer stop()
	next := func() error {
		select {
		case err := <-changes:
			return err
		case <-time.After(time.Minute):
			t.Fatal("the listener says nothing for a minute")
			return nil
		}
	}
	hears := func() {
		t.Helper()
		for next() != nil {
			continue
		}
		if err := c.Wake(t.Context(), "settle", "7"); err != nil {
			t.Fatal(err)
		}
		if h := <-heard; h.TaskType != "settle" || len(h.Keys) != 1 || h.Keys[0] != "7" {
			t.Errorf("hint %+v", h)
		}
	}
	hears()
	time.Sleep(3 * pingEvery) // quiet, and pings go to and fro
	proxy.Cut()
	if next() == nil {
		t.Error("the loss of the connection was not told")
	}
	hears()
	proxy.Swallow(true)
	if next() == nil {
		t.Error("the dead network was not told")
	}
	proxy.Swallow(false)
	proxy.Cut()
	hears()
}
