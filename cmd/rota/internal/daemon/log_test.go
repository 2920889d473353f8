package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/slogtest"

	"github.com/sirupsen/logrus"

	"github.com/dutyrota/rota/cmd/rota/internal/redact"
)

// The library's lines keep the rules of slog on their way to logrus. There are two differences: logrus writes fields of
// a group as "group.field", and gives a line without a time the present one.
func TestLibraryLoggerKeepsTheRulesOfSlog(t *testing.T) {
	var out bytes.Buffer
	slogtest.Run(t, func(*testing.T) slog.Handler {
		out.Reset()
		return LibraryLogger(NewLogger(&out, redact.URLs)).Handler()
	}, func(t *testing.T) map[string]any {
		var line map[string]any
		if err := json.Unmarshal(out.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(t.Name(), "/zero-time") {
			delete(line, slog.TimeKey)
		}
		return nested(line)
	})
}

// nested returns fields with their groups as maps.
func nested(line map[string]any) map[string]any {
	all := map[string]any{}
	for path, value := range line {
		at, names := all, strings.Split(path, ".")
		for _, name := range names[:len(names)-1] {
			if at[name] == nil {
				at[name] = map[string]any{}
			}
			at = at[name].(map[string]any) // no field has the name of a group
		}
		at[names[len(names)-1]] = value
	}
	return all
}

// The library's lines look like the program's own ones, as JSON and as text.
func TestLibraryLoggerWritesLinesLikeTheProgram(t *testing.T) {
	err := errors.New("no route")
	levels := map[slog.Level]logrus.Level{
		slog.LevelDebug: logrus.DebugLevel, slog.LevelInfo: logrus.InfoLevel, slog.LevelWarn: logrus.WarnLevel, slog.LevelError: logrus.ErrorLevel,
	}
	for _, terminal := range []bool{false, true} {
		for from, to := range levels {
			want := written(terminal, func(log *logrus.Logger) {
				log.WithError(err).WithFields(logrus.Fields{"task_type": "settle", "queue": "0", "epoch": int64(7), "final": true}).Log(to, "queue \"lost\"")
			})
			got := written(terminal, func(log *logrus.Logger) {
				library := LibraryLogger(log).With(slog.String("task_type", "settle"))
				library.LogAttrs(context.Background(), from, "queue \"lost\"",
					slog.String("queue", "0"), slog.Int64("epoch", 7), slog.Bool("final", true), slog.Any("error", err))
			})
			if got != want || want == "" {
				t.Errorf("the library's line is %q, want %q", got, want)
			}
		}
	}
}

// written returns what f logs, without the time.
func written(terminal bool, f func(*logrus.Logger)) string {
	var out bytes.Buffer
	log := NewLogger(&out, redact.URLs)
	log.SetLevel(logrus.DebugLevel)
	log.SetFormatter(&logrus.JSONFormatter{DisableTimestamp: true})
	if terminal {
		log.SetFormatter(messageEscaper{&logrus.TextFormatter{DisableTimestamp: true, ForceColors: true}})
	}
	f(log)
	return out.String()
}
