package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/ops"
)

// ScaleHandler serves GET /scale?task=TASK&per_worker=ITEMS: how many workers a task type should have, as JSON, for the
// metrics-api scaler of KEDA. See docs/autoscaling.md for the arithmetic. All requests within a second share one read
// of the database, so that no number of requests can flood it.
//
// It answers 400 for a malformed request, 404 for an unknown task type or one whose backlog nobody has counted, and
// 503 if the counts are too old to tell or the database does not answer within two seconds. It does not check who
// asks.
func ScaleHandler(c *center.Center) http.Handler { return &scaleHandler{client: ops.New(c)} }

const (
	scaleAge     = time.Second     // for how long one read of the database serves all requests
	scaleTimeout = 2 * time.Second // of a read
)

// scaleHandler keeps what it has read of all task types together, and not of each that a request names: what it holds
// does not depend on what clients ask for.
type scaleHandler struct {
	client *ops.Client

	mu    sync.Mutex // held during a read: the requests that wait for it share its result
	tasks []ops.TaskRecord
	err   error // of the last read
	read  time.Time
}

func (h *scaleHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Query().Get("task")
	perWorker, err := strconv.ParseInt(r.URL.Query().Get("per_worker"), 10, 64)
	if err != nil || perWorker < 1 || name == "" {
		http.Error(w, "want ?task=TASK&per_worker=ITEMS, with at least 1 item", http.StatusBadRequest)
		return
	}
	tasks, err := h.list(r.Context())
	if err != nil {
		http.Error(w, "the database does not answer", http.StatusServiceUnavailable)
		return
	}
	i := slices.IndexFunc(tasks, func(t ops.TaskRecord) bool { return t.TaskType == name })
	if i < 0 {
		http.Error(w, "there is no such task type", http.StatusNotFound)
		return
	}
	s, err := tasks[i].Scale(perWorker)
	switch {
	case errors.Is(err, ops.ErrNoBacklog):
		http.Error(w, fmt.Sprintf("the task type has no backlog: %v", ops.ErrNoBacklog), http.StatusNotFound)
	case err != nil:
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	default:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(s) // the client has closed the connection
	}
}

// list returns the task types, at most a second old. The read goes on when the client that caused it has gone, because
// others may wait for it.
func (h *scaleHandler) list(ctx context.Context) ([]ops.TaskRecord, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.read.IsZero() || time.Since(h.read) >= scaleAge {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), scaleTimeout)
		defer cancel()
		h.tasks, h.err = h.client.Tasks().List(ctx, "")
		h.read = time.Now()
	}
	return h.tasks, h.err
}
