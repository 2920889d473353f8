package consolecmd

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"

	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/cmd/rota/internal/cli"
	"github.com/dutyrota/rota/cmd/rota/internal/daemon"
	"github.com/dutyrota/rota/console"
	"github.com/dutyrota/rota/internal/regular"
)

// defaultConsole is where the console is without a flag.
const defaultConsole = "localhost:8330"

// consoleServer holds the flags of the console: where it serves, and who may do what.
type consoleServer struct {
	address         string
	allowChanges    bool
	passwords       string // a file
	userHeader      string
	proxies         []string // prefixes of addresses
	tlsCert, tlsKey string   // files
}

func (s *consoleServer) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&s.address, "http", defaultConsole, "serve at this `ADDRESS`; port 0 takes a free one")
	flags.BoolVar(&s.allowChanges, "allow-changes", false, "offer changes to people who have the right")
	flags.StringVar(&s.passwords, "passwords", "", "let in the people of this `FILE`, who sign in: "+
		"lines NAME:BCRYPT[:RIGHTS]")
	flags.StringVar(&s.userHeader, "user-header", "", "`HEADER` in which a proxy says who makes the request")
	flags.StringSliceVar(&s.proxies, "proxy", nil, "`ADDRESSES` of that proxy, such as 10.1.2.3 or 10.1.0.0/16")
	flags.StringVar(&s.tlsCert, "tls-cert", "", "serve https with the certificates in this PEM `FILE`")
	flags.StringVar(&s.tlsKey, "tls-key", "", "the private key of the first of them, a PEM `FILE`")
}

// check refuses flags that do not go together.
func (s *consoleServer) check() error {
	local, err := isLoopback(s.address)
	switch {
	case err != nil:
		return err
	case (s.userHeader == "") != (len(s.proxies) == 0):
		return errors.New("--user-header and --proxy belong together: the console must know whose header it can trust")
	case s.userHeader != "" && s.passwords != "":
		return errors.New("--user-header and --passwords exclude each other")
	case (s.tlsCert == "") != (s.tlsKey == ""):
		return errors.New("--tls-cert and --tls-key belong together")
	case local:
		return nil
	case s.userHeader == "" && s.passwords == "":
		return fmt.Errorf("--http (%s) must be localhost or another loopback address, unless --passwords or --user-header "+
			"says who may look", s.address)
	case s.passwords != "" && s.tlsCert == "":
		return fmt.Errorf("--http (%s) needs --tls-cert and --tls-key, because passwords must not cross the network as "+
			"plain text; behind a proxy that has a certificate, serve at localhost", s.address)
	}
	return nil
}

// isLoopback reports whether only programs on this host can reach an address.
func isLoopback(address string) (bool, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false, fmt.Errorf("--http (%s): %w", address, err)
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback(), nil
}

// options returns the options of the console, with what the files hold.
func (s *consoleServer) options(log *logrus.Logger) (o console.Options, err error) {
	o = console.Options{Logger: daemon.LibraryLogger(log), ReadOnly: !s.allowChanges}
	if s.tlsCert != "" {
		if err := s.checkPair(); err != nil {
			return o, fmt.Errorf("--tls-cert and --tls-key: %w", err)
		}
	}
	switch {
	case s.passwords != "":
		o.Access, err = passwordAccess(s.passwords, o.Logger)
	case s.userHeader != "":
		o.Access, err = s.proxyAccess()
	default:
		o.Access = console.Loopback(console.Actor{Name: cli.AtHost("console"), May: everything})
	}
	return o, err
}

// checkPair returns an error if the files are no certificate and its key.
func (s *consoleServer) checkPair() error {
	cert, err := regular.ReadFile(s.tlsCert)
	if err != nil {
		return err
	}
	key, err := regular.ReadFile(s.tlsKey)
	if err != nil {
		return err
	}
	_, err = tls.X509KeyPair(cert, key)
	return err
}

func everything(console.Right, string) bool { return true }

func passwordAccess(path string, log *slog.Logger) (func(*http.Request) (console.Actor, error), error) {
	p, err := console.OpenPasswords(path, log)
	if err != nil {
		return nil, fmt.Errorf("--passwords %s: %w", path, err)
	}
	return p.Access, nil
}

// proxyAccess trusts the header of the proxies. Everybody that they let through has all rights.
func (s *consoleServer) proxyAccess() (func(*http.Request) (console.Actor, error), error) {
	p := console.Proxy{Header: s.userHeader, May: func(string, console.Right, string) bool { return true }}
	for _, text := range s.proxies {
		prefix, err := parsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("--proxy (%s) must be an IP address or a prefix such as 10.1.0.0/16", text)
		}
		p.From = append(p.From, prefix)
	}
	return p.Access, nil
}

func parsePrefix(text string) (netip.Prefix, error) {
	if ip, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(ip.Unmap(), ip.Unmap().BitLen()), nil
	}
	return netip.ParsePrefix(text)
}

// scheme returns how browsers reach the console.
func (s *consoleServer) scheme() string {
	if s.tlsCert != "" {
		return "https"
	}
	return "http"
}
