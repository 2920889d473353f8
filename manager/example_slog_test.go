package manager_test

import (
	"log/slog"
	"os"

	"github.com/sirupsen/logrus"
	sloghook "github.com/sirupsen/logrus/hooks/slog"

	"github.com/dutyrota/rota/manager"
)

// A program that logs with slog passes its logger.
func ExampleConfig_slog() {
	handler := slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{} // for the sake of this example
			}
			return a
		},
	})
	cfg := manager.Config{Logger: slog.New(handler)}

	cfg.Logger.Info("joined", slog.String("task_type", "settle")) // as a worker does
	// Output: level=INFO msg=joined task_type=settle
}

// A program that logs with logrus passes a bridge to its logger. Levels, fields and errors arrive as if they were
// logged with logrus.
func ExampleConfig_logrus() {
	mine := logrus.New()
	mine.SetOutput(os.Stdout)
	mine.SetFormatter(&logrus.TextFormatter{DisableTimestamp: true, DisableColors: true})
	cfg := manager.Config{Logger: slog.New(sloghook.NewHandler(mine, nil))}

	cfg.Logger.Warn("heartbeat failed; trying again", slog.Any("error", os.ErrDeadlineExceeded)) // as a worker does
	// Output: level=warning msg="heartbeat failed; trying again" error="i/o timeout"
}
