package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/dutyrota/rota/internal/testdb"
)

// A worker answers its probes while clients open more half-sent requests than it has places, and open them again when
// they are closed: from one address, from three, and each from an address of its own. It does so where the probes are
// beside the pages, and where they are alone. Only Linux has all addresses of 127.0.0.0/8.
func TestHalfSentRequestsDoNotStopProbes(t *testing.T) {
	t.Parallel()
	_, dir := openOrders(t, testdb.URL(t, testdb.SQLite), 1)
	p := startRota(t, dir, nil, "worker", "-c", "rota.yaml", "--probes", "127.0.0.1:0")
	const alone = "serving /livez and /readyz alone"
	eventually(t, "the worker serves", func() bool { return p.address() != "" && p.logged(alone) != nil })
	probesAlone, _ := p.logged(alone)["address"].(string)
	if code := status(t, probesAlone, "/metrics"); code != http.StatusNotFound {
		t.Errorf("/metrics beside the probes alone is %d", code)
	}
	for _, address := range []string{p.address(), probesAlone} {
		for _, addresses := range []int{1, 3, 250} {
			crowd(t, address, addresses, func() {
				ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
				defer cancel()
				for i := range 20 {
					if code := probeOnce(ctx, address); code != http.StatusOK {
						t.Fatalf("%d addresses: probe %d of %s has the status %d, or no answer within %s", addresses, i, address, code, waitLimit)
					}
				}
			})
		}
	}
}

// crowd keeps 250 half-sent requests open while f runs. They come from this number of addresses.
func crowd(t *testing.T, to string, addresses int, f func()) {
	t.Helper()
	const clients = 250
	ctx, cancel := context.WithCancel(t.Context())
	var ended, opened sync.WaitGroup
	opened.Add(clients)
	for i := range clients {
		from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 2, byte(1+i%addresses))}}
		ended.Go(func() {
			for first := true; ctx.Err() == nil; first = false {
				conn, err := from.DialContext(ctx, "tcp", to)
				if first {
					opened.Done()
				}
				if err != nil {
					continue
				}
				stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
				_, _ = fmt.Fprint(conn, "GET /livez HTTP/1.1\r\nHost: rota\r\n") // the worker may have closed it
				_, _ = io.Copy(io.Discard, conn)                                 // until the worker closes it
				stop()
				_ = conn.Close()
				select { // a client that is turned away comes again, like this one
				case <-ctx.Done():
				case <-time.After(100 * time.Millisecond):
				}
			}
		})
	}
	opened.Wait()
	f()
	cancel()
	ended.Wait()
}

// probeOnce asks for /livez on a connection of its own, as a node of Kubernetes does. It returns 0 without an answer.
func probeOnce(ctx context.Context, address string) int {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/livez", nil)
	if err != nil {
		return 0
	}
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0
	}
	_ = response.Body.Close()
	return response.StatusCode
}
