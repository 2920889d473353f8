package ops

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/dutyrota/rota/internal/sqldb"
)

// An error of the connection is one short line that names its cause, and the error that says all is inside.
func TestBrief(t *testing.T) {
	t.Parallel()
	c := &Client{db: &sqldb.DB{Dialect: &sqldb.Dialect{Classify: func(error) sqldb.Class { return sqldb.Other }}}}
	dial := &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{Port: 5432}, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	for want, err := range map[string]error{
		"the database cannot be reached: connection refused": fmt.Errorf("diagnose: ask for the version: %w", dial),
		"the database cannot be reached: EOF":                fmt.Errorf("diagnose: %w", io.EOF),
		"a; b":                                               errors.New("a\nb"),
		strings.Repeat("x", 160) + "...":                     errors.New(strings.Repeat("x", 161)),
	} {
		if got := c.Brief(err); got.Error() != want || !errors.Is(got, err) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
