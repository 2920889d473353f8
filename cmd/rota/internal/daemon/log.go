package daemon

import (
	"io"
	"log/slog"
	"os"

	"github.com/sirupsen/logrus"
	sloghook "github.com/sirupsen/logrus/hooks/slog"

	"github.com/dutyrota/rota/cmd/rota/internal/cli"
	"github.com/dutyrota/rota/internal/escape"
)

const logTime = "2006-01-02T15:04:05.000Z07:00"

// NewLogger writes text to a terminal and JSON to anything else.
func NewLogger(out io.Writer) *logrus.Logger {
	log := logrus.New()
	log.SetOutput(out)
	log.SetFormatter(newFormatter(cli.IsTerminal(out), os.Getenv("NO_COLOR") == ""))
	return log
}

// LibraryLogger returns the logger that the library takes. It writes to log.
func LibraryLogger(log *logrus.Logger) *slog.Logger { return slog.New(sloghook.NewHandler(log, nil)) }

func newFormatter(terminal, color bool) logrus.Formatter {
	switch text := (&logrus.TextFormatter{FullTimestamp: true, TimestampFormat: logTime, DisableColors: !color}); {
	case !terminal:
		return &logrus.JSONFormatter{TimestampFormat: logTime}
	case color:
		return messageEscaper{text}
	default:
		return text
	}
}

// messageEscaper escapes the messages for logrus's coloured text, which quotes
// the fields but prints the message as it is.
type messageEscaper struct{ logrus.Formatter }

// Format implements logrus.Formatter.
func (f messageEscaper) Format(e *logrus.Entry) ([]byte, error) {
	safe := *e
	safe.Message = escape.Text(e.Message)
	return f.Formatter.Format(&safe)
}
