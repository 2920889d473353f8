package schema

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/internal/testdb"
)

func TestAwaitNamesTheHolder(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		l, other := rivals(t, url)
		if err := l.acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
		err := other.await(t.Context(), other.db, 100*time.Millisecond)
		want := fmt.Sprintf("another process is migrating: %s holds the migration lock, the schema is version 0 of %d", l.holder, Latest())
		if err == nil || err.Error() != want {
			t.Errorf("beside a holder:\n got %v\nwant %s", err, want)
		}
		execute(t, l.db, `UPDATE schedule_schema_lock SET expires_at = '2020-01-01 00:00:00.000000'`)
		if err := Await(t.Context(), other.db, other.name); !errors.Is(err, ErrMissing) {
			t.Errorf("after the holder has died: %v", err)
		}
		l.release(t.Context())
		if err := Await(t.Context(), other.db, other.name); !errors.Is(err, ErrMissing) {
			t.Errorf("without a holder: %v", err)
		}
	})
}

func TestUpNamesTheHolder(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		l, other := rivals(t, url)
		if err := l.acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, _, err := Up(ctx, other.db, other.name)
		if err == nil || !strings.Contains(err.Error(), "acquire the migration lock: "+l.holder+" holds it: ") {
			t.Errorf("error %v, want the holder %s in it", err, l.holder)
		}
	})
}
