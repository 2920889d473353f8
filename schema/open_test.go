package schema_test

import (
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/schema"
)

// A worker that starts while another creates the tables meets the version after the first of several migrations.
func TestOpenWaitsForTheProcessThatMigrates(t *testing.T) {
	testdb.Each(t, func(t *testing.T, url string) {
		first := centertest.Open(t, url, center.Options{})
		schema.TeachLater(t, schema.Latest()+2)
		migrate := schema.HoldLock(t, first.DB(), first.Dialect())
		opened := make(chan error, 1)
		go func() {
			c, err := center.Open(t.Context(), anydb.URL(url), center.Options{})
			if err == nil {
				err = c.Close()
			}
			opened <- err
		}()
		select {
		case err := <-opened:
			t.Fatalf("Open returned beside a process that migrates: %v", err)
		case <-time.After(300 * time.Millisecond): // it waits
		}
		migrate()
		if err := <-opened; err != nil {
			t.Fatal(err)
		}
	})
}
