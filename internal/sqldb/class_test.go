package sqldb

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"syscall"
	"testing"
)

// An outage is what the list has, and each row of it is one, however the driver wraps it.
func TestErrorsOfTheNetwork(t *testing.T) {
	rows := []error{
		io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.ECONNABORTED,
		syscall.EPIPE, syscall.ETIMEDOUT, syscall.EHOSTUNREACH, syscall.ENETUNREACH,
	}
	d := &Dialect{Classify: func(error) Class { return Other }}
	for _, err := range rows {
		if got := d.Class(fmt.Errorf("read: %w", err)); got != Broken {
			t.Errorf("%v: class %s, want broken", err, got)
		}
	}
	for _, err := range broken {
		if !slices.Contains(rows, err) {
			t.Errorf("the row %v has no case", err)
		}
	}
	for _, err := range []error{syscall.ENOENT, syscall.EACCES, syscall.EADDRINUSE, errors.New("nothing known")} {
		if got := d.Class(fmt.Errorf("open: %w", err)); got != Other {
			t.Errorf("%v: class %s, want other", err, got)
		}
	}
}
