package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/dutyrota/rota/center"
)

// ScaleHandler serves GET /scale?task=TASK&per_worker=ITEMS: how many workers a task type should have, as JSON, for the
// metrics-api scaler of KEDA. See docs/autoscaling.md for the arithmetic. A request asks the database once.
//
// It answers 400 for a malformed request, 404 for an unknown task type or one whose backlog nobody has counted, and 503 if
// the database does not answer within two seconds. It does not check who asks.
func ScaleHandler(c *center.Center) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		perWorker, err := strconv.ParseInt(r.URL.Query().Get("per_worker"), 10, 64)
		if err != nil || perWorker < 1 || r.URL.Query().Get("task") == "" {
			http.Error(w, "want ?task=TASK&per_worker=ITEMS, with at least 1 item", http.StatusBadRequest)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
		defer cancel()
		s, err := c.Tasks().Scale(ctx, r.URL.Query().Get("task"), perWorker)
		switch {
		case errors.Is(err, center.ErrUnknownTask):
			http.Error(w, "there is no such task type", http.StatusNotFound)
		case errors.Is(err, center.ErrNoBacklog):
			http.Error(w, fmt.Sprintf("the task type has no backlog: %v", center.ErrNoBacklog), http.StatusNotFound)
		case err != nil:
			http.Error(w, "the database does not answer", http.StatusServiceUnavailable)
		default:
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(s) // the client has closed the connection
		}
	})
}
