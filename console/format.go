package console

import (
	"context"
	"log/slog"
	"net/http"
	"strings"

	"github.com/dutyrota/rota/internal/records"
)

// The formats of a page.
const (
	formatHTML = "html"
	formatJSON = "json"
	formatCSV  = "csv"
)

// formatOf returns the format that the client asks for, by ?format= or by its Accept header.
func formatOf(r *http.Request) string {
	switch format := r.URL.Query().Get("format"); format {
	case formatJSON, formatCSV:
		return format
	}
	accept := r.Header.Get("Accept")
	switch {
	case strings.Contains(accept, "text/html"):
		return formatHTML
	case strings.Contains(accept, "application/json"):
		return formatJSON
	case strings.Contains(accept, "text/csv"):
		return formatCSV
	}
	return formatHTML
}

// writeRecords sends the records of the page as JSON or CSV.
func (v *view) writeRecords(ctx context.Context, w http.ResponseWriter, format string) {
	if v.Records == nil {
		http.Error(w, "this page has no list; want format=html", http.StatusNotAcceptable)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	if format == formatCSV {
		w.Header().Set("Content-Type", "text/csv; charset=utf-8")
		w.Header().Set("Content-Disposition", `attachment; filename="rota.csv"`)
		v.report(ctx, records.WriteCSV(w, v.Records, true))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	v.report(ctx, records.NewEncoder(w).Encode(records.JSON(v.Records)))
}

// report logs that a client has not got all of a response.
func (v *view) report(ctx context.Context, err error) {
	if err != nil {
		v.viewer.options.Logger.LogAttrs(ctx, slog.LevelDebug, "send a list of the console", slog.String("path", v.Path),
			slog.Any("error", err))
	}
}
