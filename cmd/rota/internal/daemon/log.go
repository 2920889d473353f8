package daemon

import (
	"io"
	"log/slog"
	"maps"
	"os"

	"github.com/sirupsen/logrus"
	sloghook "github.com/sirupsen/logrus/hooks/slog"

	"github.com/dutyrota/rota/cmd/rota/internal/cli"
	"github.com/dutyrota/rota/internal/escape"
)

const logTime = "2006-01-02T15:04:05.000Z07:00"

// NewLogger writes text to a terminal and JSON to anything else. Each text passes redact.
func NewLogger(out io.Writer, redact func(string) string) *logrus.Logger {
	log := logrus.New()
	log.SetOutput(out)
	log.SetFormatter(redactor{newFormatter(cli.IsTerminal(out), os.Getenv("NO_COLOR") == ""), redact})
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

// redactor redacts the message and the fields of a line.
type redactor struct {
	logrus.Formatter
	redact func(string) string
}

// Format implements logrus.Formatter.
func (f redactor) Format(e *logrus.Entry) ([]byte, error) {
	safe := *e
	safe.Message, safe.Data = f.redact(e.Message), maps.Clone(e.Data)
	for name, value := range safe.Data {
		switch value := value.(type) {
		case string:
			safe.Data[name] = f.redact(value)
		case error:
			safe.Data[name] = f.redact(value.Error())
		case []string:
			texts := make([]string, len(value))
			for i, text := range value {
				texts[i] = f.redact(text)
			}
			safe.Data[name] = texts
		}
	}
	return f.Formatter.Format(&safe)
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
