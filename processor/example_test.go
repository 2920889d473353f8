package processor_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/dutyrota/rota/processor"
)

// order is an item: one row of the user's work.
type order struct{ ID int }

// settle is a TaskDealer of orders. A real one selects and updates them with SQL.
type settle struct {
	mu   sync.Mutex
	open map[int]bool
	done context.CancelFunc // called when all are settled
}

func (s *settle) Select(_ context.Context, sel processor.Selection) ([]order, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var orders []order
	for id := range s.open {
		if id%sel.Total == sel.Queue.Index && len(orders) < sel.Limit {
			orders = append(orders, order{id})
		}
	}
	return orders, nil
}

func (s *settle) Execute(_ context.Context, orders []order) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range orders {
		delete(s.open, o.ID)
	}
	if len(s.open) == 0 {
		s.done()
	}
	return nil
}

// A dealer is worked here without a roster; a real program hands it to manager.Serve.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	dealer := &settle{open: map[int]bool{}, done: cancel}
	for id := range 100 {
		dealer.open[id] = true
	}
	p, err := processor.New(dealer, processor.Env{TaskType: "settle", OwnSign: "BASE"}, processor.Settings{
		ThreadNumber: 2, FetchNumber: 20, ExecuteNumber: 5,
		SleepTimeNoData: time.Second, Retry: time.Second, RetryMax: time.Minute,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, q := range []processor.Queue{{ID: "0", Index: 0, Epoch: 1}, {ID: "1", Index: 1, Epoch: 1}} {
		if err := p.Grant(q, 2); err != nil {
			fmt.Println(err)
			return
		}
	}
	if err := p.Run(ctx); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("settled:", p.Stats().SuccessCount)
	// Output: settled: 100
}
