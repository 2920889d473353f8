package mysql

import (
	"fmt"

	"github.com/dutyrota/rota/internal/sqldb"
)

// tlsUnverified is the value of tls off this host if the URL has none: the connection is encrypted and the server is
// not verified, because most servers of MySQL have a certificate that they made themselves.
const tlsUnverified = "skip-verify"

// local reports whether all servers are on this host.
func local(u *sqldb.URL) bool { return u.Query.Has("socket") || u.Loopback() }

// tlsNote says what TLS protects, for an operator.
func tlsNote(u *sqldb.URL) sqldb.Note {
	mode := u.Query.Get("tls")
	if mode == "" && !local(u) {
		mode = tlsUnverified
	}
	const hint = "tls=true in the URL; for a certificate of your own, a configuration that the program registers " +
		"(mysql.RegisterTLSConfig)"
	bad := func(format string, args ...any) sqldb.Note {
		return sqldb.Note{Kind: "TLS", Hint: hint, Finding: fmt.Sprintf(format, args...)}
	}
	switch {
	case mode == "true":
		return sqldb.Note{Kind: "TLS", OK: true, Finding: "encrypted; the server's certificate and its name are verified " +
			"(tls=true)"}
	case local(u):
		return sqldb.Note{Kind: "TLS", OK: true, Finding: "the server is on this host: nothing needs to be verified"}
	case mode == "false":
		return bad("not encrypted (tls=false): the network can read and change what is sent")
	case mode == "preferred":
		return bad("perhaps not encrypted, and the server is not verified (tls=preferred): the network can read and change " +
			"what is sent")
	case mode == tlsUnverified:
		return bad("encrypted, but the server is not verified (tls=%s): another host could take its place and read the "+
			"password", tlsUnverified)
	}
	return sqldb.Note{Kind: "TLS", OK: true, Finding: fmt.Sprintf("encrypted as the program's configuration %s says",
		mode)}
}
