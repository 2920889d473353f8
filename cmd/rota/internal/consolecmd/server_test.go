package consolecmd

import (
	"strings"
	"testing"
)

// The console listens for other hosts only with a sign-in and TLS: no password crosses the network as plain text.
func TestConsoleFlags(t *testing.T) {
	t.Parallel()
	tls := consoleServer{tlsCert: "c", tlsKey: "k"}
	for _, c := range []struct {
		consoleServer
		address, want string
	}{
		{consoleServer{}, "localhost:8330", ""},
		{consoleServer{}, "127.8.9.1:1", ""},
		{consoleServer{allowChanges: true}, "[::1]:8330", ""},
		{consoleServer{}, "0.0.0.0:8330", "must be localhost"},
		{consoleServer{}, ":8330", "must be localhost"},
		{tls, "192.0.2.1:8330", "must be localhost"},
		{consoleServer{}, "8330", "missing port"},
		{consoleServer{passwords: "people"}, "localhost:1", ""},
		{consoleServer{passwords: "people"}, ":1", "needs --tls-cert"},
		{consoleServer{passwords: "people", tlsCert: "c", tlsKey: "k"}, ":1", ""},
		{consoleServer{passwords: "people", tlsCert: "c"}, ":1", "belong together"},
		{consoleServer{userHeader: "X-User"}, "localhost:1", "belong together"},
		{consoleServer{proxies: []string{"10.0.0.1"}}, "localhost:1", "belong together"},
		{consoleServer{userHeader: "X-User", proxies: []string{"10.0.0.1"}}, ":1", ""},
		{consoleServer{userHeader: "X-User", proxies: []string{"10.0.0.1"}, passwords: "people"}, "localhost:1", "exclude each other"},
	} {
		s := c.consoleServer
		s.address = c.address
		if err := s.check(); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", s, err, c.want)
		}
	}
}

func TestConsoleProxies(t *testing.T) {
	t.Parallel()
	for prefix, ok := range map[string]bool{"10.1.2.3": true, "10.1.0.0/16": true, "fd00::/8": true, "::ffff:10.0.0.1": true, "": false, "proxy": false, "10.0.0.0/33": false} {
		s := consoleServer{userHeader: "X-User", proxies: []string{prefix}}
		if _, err := s.proxyAccess(); (err == nil) != ok {
			t.Errorf("%q: %v", prefix, err)
		}
	}
}
