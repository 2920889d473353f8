package sqldealer

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/config"
	"github.com/dutyrota/rota/internal/engine"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/processor"
)

// deadRows is an ItemStore in which the rows below a number are dead.
type deadRows int

func (deadRows) Any(context.Context, processor.Queue) (bool, error) { return true, nil }

func (deadRows) Started(context.Context, processor.Queue) ([]engine.FailedItem, error) {
	return nil, nil
}

func (n deadRows) Find(_ context.Context, _ processor.Queue, keys []string) (dead []engine.FailedItem, _ error) {
	for _, key := range keys {
		if i, err := strconv.Atoi(key); err == nil && i < int(n) {
			dead = append(dead, engine.FailedItem{Key: key, Attempts: 3, Dead: true})
		}
	}
	return dead, nil
}

func (deadRows) Save(context.Context, processor.Queue, []engine.FailedItem) error { return nil }
func (deadRows) Delete(context.Context, processor.Queue, []string) error          { return nil }

// With {{after}}, rows are executed behind ten times the dead rows that a select returns (X2).
func TestRowsBehindDeadRows(t *testing.T) {
	testdb.EachReused(t, func(t *testing.T, url string) {
		s := openShop(t, url)
		var rows []string
		for i := range 240 {
			rows = append(rows, fmt.Sprintf("(%d, 'NEW')", i))
		}
		s.exec("CREATE TABLE jobs (id BIGINT PRIMARY KEY, state VARCHAR(9) NOT NULL)", "INSERT INTO jobs VALUES "+strings.Join(rows, ", "))
		d := s.dealer(config.SQLDealer{
			Select:  "SELECT id FROM jobs WHERE state = 'NEW' AND id > {{after}} AND {{index}} = 1 ORDER BY id LIMIT {{limit}}",
			Execute: "UPDATE jobs SET state = 'DONE' WHERE state = 'NEW' AND id IN ({{keys}})",
			Key:     []string{"id"}, AfterStart: []string{"-1"},
		})
		p, err := engine.New(d.Use(s.DB()), engine.Env{
			Items: deadRows(200), Bind: func(context.Context, processor.Queue, *string) context.Context { return s.batch(7) },
		}, engine.Settings{
			ThreadNumber: 2, FetchNumber: 2, ExecuteNumber: 2, SleepTimeNoData: 10 * time.Millisecond, Retry: time.Second, RetryMax: time.Second,
			ItemMaxAttempts: 3,
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := p.Grant(processor.Queue{ID: "1", Index: 1, Epoch: 7}, 2); err != nil {
			t.Fatal(err)
		}
		go func() {
			<-p.Emptied() // the queue counts as empty when a whole pass has found nothing
			cancel()
		}()
		if err := p.Run(ctx); err != nil {
			t.Fatal(err)
		}
		s.want("SELECT COUNT(*), MIN(id) FROM jobs WHERE state = 'DONE'", "40 200")
	})
}
