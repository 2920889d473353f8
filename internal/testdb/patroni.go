package testdb

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// Cluster is three PostgreSQL servers that replicate each other. Patroni makes one of them the primary, and one that
// replicates it synchronously the next one.
type Cluster struct {
	Nodes []*Server
	store *Server           // etcd
	apis  map[string]string // the URL of Patroni's API, by the URL of the node
}

// Patroni returns a private cluster on this host, with one etcd, and the URL of a balancer that leads to its primary.
// They end with the test. Without the packages patroni and etcd-server, and without PostgreSQL among the wanted
// databases, it skips the test.
func Patroni(t testing.TB) (c *Cluster, url string, balancer *Proxy) {
	t.Helper()
	if !slices.Contains(Kinds(t), Postgres) {
		t.Skipf("ROTA_TEST_DATABASES omits %s", Postgres)
	}
	for _, kind := range []string{Postgres, patroni, etcd} {
		if !Installed(kind) {
			t.Skipf("no Patroni here: %s is not installed (on Debian: apt-get install postgresql patroni etcd-server)",
				engines[kind].daemon)
		}
	}
	c, err := StartCluster()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	var urls []string
	for _, node := range c.Nodes {
		urls = append(urls, node.URL())
	}
	url, balancer = Through(t, urls[0])
	balancer.targets.serves = func(host string) bool {
		i := slices.IndexFunc(urls, func(u string) bool { return strings.Contains(u, host) })
		return c.leads(c.Nodes[i])
	}
	if err := balancer.Redirect(urls...); err != nil {
		t.Fatal(err)
	}
	return c, url, balancer
}

// StartCluster starts the servers of a cluster, and returns when one of them is the primary and may be succeeded.
func StartCluster() (c *Cluster, err error) {
	c = &Cluster{apis: map[string]string{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	ports := make([]int, 1+patroniNodes)
	for i := range ports {
		if ports[i], err = freePort(); err != nil {
			return c, err
		}
	}
	c.store, err = start(plan{
		kind: etcd, env: []string{fmt.Sprintf("PEER=%d", ports[0])},
		url: func(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) },
	})
	if err != nil {
		return c, err
	}
	for i := range patroniNodes {
		node, err := start(plan{
			kind: patroni,
			env: []string{
				"ETCD=" + c.store.URL(), fmt.Sprintf("NAME=n%d", i+1), fmt.Sprintf("REST=%d", ports[1+i]),
			},
			url: func(port int) string { return fmt.Sprintf(engines[Postgres].url, port) },
		})
		if err != nil {
			return c, err
		}
		c.Nodes = append(c.Nodes, node)
		c.apis[node.URL()] = fmt.Sprintf("http://127.0.0.1:%d", ports[1+i])
	}
	for deadline := time.Now().Add(2 * time.Minute); c.Primary() == nil || !c.MaySwitchOver(); {
		if time.Now().After(deadline) {
			return c, errors.New("the cluster of Patroni has no primary with a synchronous standby after two minutes")
		}
		time.Sleep(100 * time.Millisecond)
	}
	return c, nil
}

// Close ends the servers and removes their data.
func (c *Cluster) Close() (err error) {
	for _, node := range c.Nodes {
		err = errors.Join(err, node.Close())
	}
	if c.store != nil {
		err = errors.Join(err, c.store.Close())
	}
	return err
}

const patroniNodes = 3

// Primary returns the node that is the primary according to its Patroni, or nil while there is none.
func (c *Cluster) Primary() *Server {
	if i := slices.IndexFunc(c.Nodes, c.leads); i >= 0 {
		return c.Nodes[i]
	}
	return nil
}

func (c *Cluster) leads(node *Server) bool { return c.ask(node, http.MethodGet, "/primary", "") == nil }

// MaySwitchOver reports whether Patroni knows a node that replicates the primary synchronously. It learns that later
// than the primary does, and refuses to switch over before.
func (c *Cluster) MaySwitchOver() bool {
	return slices.ContainsFunc(c.Nodes, func(node *Server) bool {
		return c.ask(node, http.MethodGet, "/synchronous", "") == nil
	})
}

// SwitchOver tells Patroni to make another node the primary.
func (c *Cluster) SwitchOver(primary *Server) error {
	name := fmt.Sprintf("n%d", 1+slices.Index(c.Nodes, primary))
	return c.ask(primary, http.MethodPost, "/switchover", `{"leader": "`+name+`"}`)
}

// ask sends a request to the API of a node. It returns an error unless the answer is a success.
func (c *Cluster) ask(node *Server, method, path, body string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, c.apis[node.URL()]+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // no connection outlives the call
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	_ = answer.Body.Close() // the status says it all
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %s", method, path, answer.Status)
	}
	return nil
}
