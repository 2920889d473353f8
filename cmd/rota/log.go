package main

import (
	"io"
	"os"

	"github.com/sirupsen/logrus"
	"golang.org/x/term"
)

const logTime = "2006-01-02T15:04:05.000Z07:00"

// newLogger writes text to a terminal and JSON to anything else.
func newLogger(out io.Writer) *logrus.Logger {
	log := logrus.New()
	log.SetOutput(out)
	log.SetFormatter(&logrus.JSONFormatter{TimestampFormat: logTime})
	if isTerminal(out) {
		log.SetFormatter(&logrus.TextFormatter{
			FullTimestamp:   true,
			TimestampFormat: logTime,
			DisableColors:   os.Getenv("NO_COLOR") != "",
		})
	}
	return log
}

func isTerminal(out any) bool {
	f, ok := out.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
