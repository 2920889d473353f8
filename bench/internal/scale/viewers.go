package scale

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"github.com/dutyrota/rota/bench/internal/report"
	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/console"
)

// viewerCount is how many people look at the console at once.
const viewerCount = 50

// Viewers is what people who look at the console cost the database.
type Viewers struct {
	CPU   float64 // of the database, in milliseconds per second
	Bytes int     // of the largest answer
}

// workers returns the number of workers whose heartbeats cost as much as the viewers; 0 if the CPU is unknown.
func (r *Result) workers(interval time.Duration) float64 {
	if r.Idle.CPU == 0 {
		return 0
	}
	return r.Viewers.CPU / (r.Idle.CPU / interval.Seconds())
}

// firstLook is how long people look before the cost is measured: the first of them read everything.
const firstLook = 5 * time.Second

// look lets people look at the pages of a roster in which nothing happens, and measures what that costs.
func (f *fleet) look(ctx context.Context, o Options) (v Viewers, err error) {
	for _, h := range f.heartbeaters {
		_ = h.c.Close() // idle connections would close under way, which takes the database longer than the viewers do
	}
	c, err := center.Open(ctx, anydb.URL(f.db.URL), center.Options{})
	if err != nil {
		return v, err
	}
	defer func() { _ = c.Close() }()
	h, err := console.Handler(c, console.Options{})
	if err != nil {
		return v, err
	}
	watch(ctx, h, min(firstLook, o.Watch))
	u, err := f.db.Measure(ctx, func() error {
		v.Bytes = watch(ctx, h, o.Watch)
		return ctx.Err()
	})
	if err != nil {
		return v, err
	}
	v.CPU = u.CPU.Seconds() * 1000 / u.Took.Seconds()
	return v, nil
}

// watch lets viewers look for some time. Each fetches its page every two seconds, as the script of the pages does. watch
// returns the length of the longest answer.
func watch(ctx context.Context, h http.Handler, span time.Duration) (most int) {
	ctx, cancel := context.WithTimeout(ctx, span)
	defer cancel()
	pages := []string{"/", "/task?task=" + taskType, "/workers", "/queue?task=" + taskType + "&queue=7", "/events"}
	var viewers sync.WaitGroup
	var mu sync.Mutex
	for i := range viewerCount {
		viewers.Go(func() {
			tag := ""
			sleep(ctx, time.Duration(i)*2*time.Second/viewerCount)
			for ctx.Err() == nil {
				r := httptest.NewRequest(http.MethodGet, pages[i%len(pages)], nil)
				r.RemoteAddr, r.Host = "127.0.0.1:5", "localhost"
				r.Header.Set("If-None-Match", tag)
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				tag = w.Header().Get("ETag")
				mu.Lock()
				most = max(most, w.Body.Len())
				mu.Unlock()
				sleep(ctx, 2*time.Second)
			}
		})
	}
	viewers.Wait()
	time.Sleep(time.Second) // queries that have begun end within a second
	return most
}

func viewersTable(results []*Result, o Options) report.Table {
	t := report.Table{
		Title:   fmt.Sprintf("%d people look at the console", viewerCount),
		Columns: []string{"database", "database CPU per second", "heartbeats of so many workers", "largest answer"},
		Note:    "Nothing happens in the roster, and its workers send no heartbeats meanwhile. A heartbeat costs what the first table says.",
	}
	for _, r := range results {
		t.Add(r.Database, f2(r.Viewers.CPU)+" ms", f2(r.workers(o.Heartbeat)), fmt.Sprintf("%d kB", r.Viewers.Bytes/1000))
	}
	return t
}
