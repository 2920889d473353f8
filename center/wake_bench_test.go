package center_test

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/internal/testdb"
)

// BenchmarkInserts is one inserting transaction of several at a time, without a hint, with Wake after it, and with
// WakeInTx, while processes listen.
func BenchmarkInserts(b *testing.B) {
	for _, listeners := range []int{1, 10} {
		url := testdb.URL(b, testdb.Postgres)
		c := openToListen(b, url)
		for range listeners {
			hear(b, openToListen(b, url))
		}
		c.DB().SetMaxIdleConns(100)
		if _, err := c.DB().ExecContext(b.Context(), `CREATE TABLE orders (id bigserial PRIMARY KEY)`); err != nil {
			b.Fatal(err)
		}
		insert := func(beside func(*sql.Tx) error) error {
			tx, err := c.DB().BeginTx(b.Context(), nil)
			if err != nil {
				return err
			}
			defer tx.Rollback()
			if _, err := tx.ExecContext(b.Context(), `INSERT INTO orders DEFAULT VALUES`); err != nil {
				return err
			}
			if err := beside(tx); err != nil {
				return err
			}
			return tx.Commit()
		}
		nothing := func(*sql.Tx) error { return nil }
		inTx := func(tx *sql.Tx) error { return c.WakeInTx(b.Context(), tx, "settle", "7") }
		for _, way := range []struct {
			name string
			once func() error
		}{
			{"none", func() error { return insert(nothing) }},
			{"Wake", func() error {
				if err := insert(nothing); err != nil {
					return err
				}
				return c.Wake(b.Context(), "settle", "7")
			}},
			{"WakeInTx", func() error { return insert(inTx) }},
		} {
			b.Run(fmt.Sprintf("%d-listen/%s", listeners, way.name), func(b *testing.B) {
				b.ReportAllocs()
				b.SetParallelism(8)
				b.RunParallel(func(next *testing.PB) {
					for next.Next() {
						if err := way.once(); err != nil {
							b.Error(err)
						}
					}
				})
			})
		}
	}
}

func openToListen(b *testing.B, url string) *center.Center {
	b.Helper()
	c, err := center.Open(b.Context(), anydb.URL(url), center.Options{Schema: center.SchemaCreate})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.Close() })
	return c
}

// hear returns when c hears hints, which it does until the end of the benchmark.
func hear(b *testing.B, c *center.Center) {
	b.Helper()
	ctx, stop := context.WithCancel(context.Background())
	hears := make(chan struct{})
	once := sync.OnceFunc(func() { close(hears) })
	var listening sync.WaitGroup
	listening.Go(func() { _ = c.Listen(ctx, nil, func(error) { once() }, func(center.Hint) {}) })
	b.Cleanup(func() { stop(); listening.Wait() })
	<-hears
}
