package center

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/dutyrota/rota/internal/sqldb"
)

// A refused certificate looks like an error of the network, and waiting does not mend it.
func TestUnreachableErrors(t *testing.T) {
	g := guard{Center: &Center{db: &sqldb.DB{Dialect: &sqldb.Dialect{Classify: func(error) sqldb.Class { return sqldb.Other }}}}}
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	for _, test := range []struct {
		err  error
		want bool
	}{
		{refused, true},
		{fmt.Errorf("cannot connect: %w", refused), true},
		{&net.DNSError{Err: "no such host", Name: "db", IsNotFound: true}, true},
		{&net.OpError{Op: "remote error", Err: tls.AlertError(42)}, false},
		{&net.OpError{Op: "local error", Err: tls.AlertError(48)}, false},
		{&fs.PathError{Op: "open", Path: "/no/such", Err: syscall.ENOENT}, false},
		{fmt.Errorf("read the key: %w", &fs.PathError{Op: "open", Path: "key", Err: syscall.EACCES}), false},
		{&net.OpError{Op: "dial", Net: "tcp", Err: &net.AddrError{Err: "invalid port", Addr: "70000"}}, false},
		{&net.OpError{Op: "dial", Net: "unix", Err: os.NewSyscallError("connect", syscall.ENOENT)}, true},
		{&net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}, true},
		{context.DeadlineExceeded, true},
		{io.ErrUnexpectedEOF, true},
		{syscall.ECONNRESET, true},
		{syscall.ENETUNREACH, true},
		{tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}, false},
		{&tls.CertificateVerificationError{Err: errors.New("unknown authority")}, false},
		{fmt.Errorf("check: %w", sqldb.TakesNoWrites("this server is a standby")), true},
		{errors.New("this connection is read-only"), false},
	} {
		if got := errors.Is(g.markUnreachable(t.Context(), test.err), ErrUnreachable); got != test.want {
			t.Errorf("%v: unreachable is %t, want %t", test.err, got, test.want)
		}
	}
}
