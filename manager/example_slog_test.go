package manager_test

import (
	"io"
	"log/slog"
	"os"

	"github.com/sirupsen/logrus"
	sloghook "github.com/sirupsen/logrus/hooks/slog"

	"github.com/dutyrota/rota/manager"
)

// A program that logs with slog: logrus hands everything on to it.
func ExampleConfig_slog() {
	mine := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{} // for the sake of this example
			}
			return a
		},
	}))
	bridge := logrus.New()
	bridge.SetOutput(io.Discard)
	bridge.AddHook(sloghook.NewHook(mine, nil))
	cfg := manager.Config{Logger: bridge}

	cfg.Logger.WithField("task_type", "settle").Info("joined")
	// Output: level=INFO msg=joined task_type=settle
}
