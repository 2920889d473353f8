package postgres

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/lib/pq"

	"github.com/dutyrota/rota/internal/sqldb"
)

// tlsNote says what TLS protects, for an operator.
func tlsNote(cfg pq.Config) sqldb.Note {
	ok := func(finding string) sqldb.Note { return sqldb.Note{Kind: "TLS", OK: true, Finding: finding} }
	bad := func(format string, args ...any) sqldb.Note {
		return sqldb.Note{Kind: "TLS", Hint: "sslmode=verify-full in the URL, and sslrootcert if the certificate is your own",
			Finding: fmt.Sprintf(format, args...)}
	}
	switch cfg.SSLMode {
	case pq.SSLModeVerifyFull:
		return ok("encrypted; the server's certificate and its name are verified (sslmode=verify-full)")
	case pq.SSLModeVerifyCA:
		return ok("encrypted; the server's certificate is verified, and not its name (sslmode=verify-ca)")
	}
	switch {
	case local(cfg):
		return ok("the server is on this host: nothing needs to be verified")
	case cfg.SSLMode == pq.SSLModeRequire && cfg.SSLRootCert != "":
		return ok("encrypted; the server's certificate is verified, and not its name (sslmode=require with sslrootcert)")
	case cfg.SSLMode == pq.SSLModeRequire:
		return bad("encrypted, but the server is not verified (sslmode=require): another host could take its place and " +
			"read " +
			"the password")
	case cfg.SSLMode == pq.SSLModeDisable:
		return bad("not encrypted (sslmode=disable): the network can read and change what is sent")
	}
	return bad("perhaps not encrypted, and the server is not verified (sslmode=%s): the network can read and change what "+
		"is sent", cfg.SSLMode)
}

// explaining says in the error of a server without TLS how to connect without it.
type explaining struct{ driver.Connector }

// Connect implements driver.Connector.
func (c explaining) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if errors.Is(err, pq.ErrSSLNotSupported) {
		return nil, fmt.Errorf("%w; sslmode=disable in the URL connects without TLS", err)
	}
	return conn, err
}
