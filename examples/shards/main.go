// Command shards pays invoices that are in eight databases. The roster is in a ninth one, and stays small: it only says
// which worker owns which of 32 queues. Each shard has the invoices of four queues, their ledger, and the fence, so
// that a payment and its entry in the ledger are one transaction of the shard. While the invoices are paid, a worker
// joins and another one leaves. At the end the program reads the ledgers: each invoice must be there once.
//
//	go run ./examples/shards                     # SQLite files in a temporary directory
//	go run ./examples/shards ROSTER SHARD ...    # the URLs of empty databases of any kinds, and up to 32 shards
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/processor"
)

// The numbers of the queues, and of the invoices of each. An invoice belongs to the queue id % queues.
const queues, perQueue = 32, 100

func main() {
	report, err := runIn(context.Background(), os.Args[1:])
	fmt.Print(report)
	if err != nil {
		log.Fatal(err)
	}
}

// runIn runs the program in the given databases, or in SQLite files if there are none.
func runIn(ctx context.Context, urls []string) (report string, err error) {
	if len(urls) == 0 {
		dir, errDir := os.MkdirTemp("", "shards-")
		if errDir != nil {
			return "", errDir
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		for _, name := range []string{"roster", "0", "1", "2", "3", "4", "5", "6", "7"} {
			urls = append(urls, "sqlite:"+filepath.Join(dir, name+".db"))
		}
	}
	if len(urls) < 2 || len(urls) > 1+queues {
		return "", fmt.Errorf("want the URLs of a roster and of 1 to %d shards, got %d URLs", queues, len(urls))
	}
	return run(ctx, cluster{roster: urls[0], shards: urls[1:]})
}

// cluster is the databases, and how they are opened.
type cluster struct {
	roster  string
	shards  []string
	options center.Options
}

// run makes invoices, lets workers pay them, and returns the report.
func run(ctx context.Context, cl cluster) (report string, err error) {
	c, err := cl.open(ctx)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := createTables(ctx, c); err != nil {
		return "", err
	}
	for shard, data := range c.AllData() {
		if err := addInvoices(ctx, data, cl.invoicesOf(shard)); err != nil {
			return "", err
		}
	}
	if err := cl.payAll(ctx, c); err != nil {
		return "", err
	}
	return audit(ctx, c)
}

// open opens the roster and the shards.
func (cl cluster) open(ctx context.Context) (*center.Center, error) {
	cl.options.Schema = center.SchemaCreate
	c, err := center.Open(ctx, anydb.URL(cl.roster), cl.options)
	if err != nil {
		return nil, err
	}
	for shard, url := range cl.shards {
		if _, err := c.FenceIn(name(shard), anydb.URL(url)); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	return c, nil
}

// name returns the name of a shard. AllData returns the shards in the order of their names.
func name(shard int) string { return fmt.Sprintf("shard%02d", shard) }

// queuesOf returns the queues whose invoices are in a shard: from the first one to the one before next.
func (cl cluster) queuesOf(shard int) (first, next int) {
	return shard * queues / len(cl.shards), (shard + 1) * queues / len(cl.shards)
}

// invoicesOf returns the ids of the invoices in a shard.
func (cl cluster) invoicesOf(shard int) (ids []int) {
	first, next := cl.queuesOf(shard)
	for queue := first; queue < next; queue++ {
		for i := range perQueue {
			ids = append(ids, i*queues+queue)
		}
	}
	return ids
}

// settings say which queues are in which database: 0-3=shard00,4-7=shard01 and so on.
func (cl cluster) settings() manager.Settings {
	parts := make([]string, len(cl.shards))
	for shard := range cl.shards {
		first, next := cl.queuesOf(shard)
		parts[shard] = fmt.Sprintf("%d-%d=%s", first, next-1, name(shard))
	}
	return manager.Settings{Queues: queues, Database: strings.Join(parts, ","), ExecuteNumber: 5}
}

// payAll lets workers pay all invoices. Two of them start, a third one joins at a quarter, and the first one leaves at
// half.
func (cl cluster) payAll(ctx context.Context, c *center.Center) error {
	all, stop := context.WithCancel(ctx)
	defer stop()
	workers, all := errgroup.WithContext(all) // a failed worker ends the others and the waiting
	first, leave := context.WithCancel(all)
	defer leave()
	workers.Go(func() error { return cl.work(first) })
	workers.Go(func() error { return cl.work(all) })
	err := awaitPaid(all, c, 0.25)
	workers.Go(func() error { return cl.work(all) })
	err = errors.Join(err, awaitPaid(all, c, 0.5))
	leave()
	err = errors.Join(err, awaitPaid(all, c, 1))
	stop()
	return errors.Join(workers.Wait(), err)
}

// work is a worker. It could as well run in another program or on another host.
func (cl cluster) work(ctx context.Context) (err error) {
	c, err := cl.open(context.WithoutCancel(ctx))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	return cl.pay(ctx, c, payments{c})
}

// pay serves the task type with a dealer until ctx ends.
func (cl cluster) pay(ctx context.Context, c *center.Center, dealer processor.TaskDealer[int64]) error {
	m, err := manager.New(c, manager.Config{}, manager.Serve("pay", dealer, cl.settings()))
	if err != nil {
		return err
	}
	return m.Run(ctx)
}

// awaitPaid waits until a part of the invoices of all shards is paid.
func awaitPaid(ctx context.Context, c *center.Center, part float64) error {
	for {
		paid := 0
		for _, data := range c.AllData() {
			var n int
			if err := data.DB().QueryRowContext(ctx, `SELECT COUNT(paid_by) FROM invoice`).Scan(&n); err != nil {
				return err
			}
			paid += n
		}
		if float64(paid) >= part*queues*perQueue {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}
