package main

import (
	"database/sql"
	"errors"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	proxy "github.com/oauth2-proxy/oauth2-proxy/v7/pkg/apis/options"
	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	core "k8s.io/api/core/v1"
	_ "modernc.org/sqlite"
)

// node stands in for the node on which the pods of a release run.
type node struct {
	all  objects
	root string // of the file systems of all containers
	pods map[string]*core.PodTemplateSpec
}

// newNode mounts the ConfigMap and, in place of the Secret, the URL of a SQLite file.
func newNode(t *testing.T, texts ...string) *node {
	t.Helper()
	n := &node{all: objectsOf(t, texts...), root: t.TempDir()}
	n.pods = pods(n.all)
	mounts := n.container(t, "shop", "worker").VolumeMounts
	folder := func(volume string) string {
		i := slices.IndexFunc(mounts, func(m core.VolumeMount) bool { return m.Name == volume })
		dir := filepath.Join(n.root, mounts[i].MountPath)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	folder("witness")
	for file, text := range map[string]string{
		path.Join(folder("config"), "rota.yaml"):  named[core.ConfigMap](t, n.all, "shop").Data["rota.yaml"],
		path.Join(folder("database"), "database"): "sqlite:" + filepath.Join(n.root, "shop.db") + "\n",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

func (n *node) container(t *testing.T, pod, name string) *core.Container {
	t.Helper()
	for _, c := range containers(n.pods[pod]) {
		if c.Name == name {
			return &c
		}
	}
	t.Fatalf("the pods of %s have no container %s", pod, name)
	return nil
}

// start starts a container with its own arguments. Its files are below the root, and a port is a free one.
func (n *node) start(t *testing.T, pod, name string) *process {
	t.Helper()
	c := n.container(t, pod, name)
	var args, env []string
	for _, arg := range c.Args {
		if strings.HasPrefix(arg, "/") {
			arg = n.root + arg
		}
		args = append(args, strings.NewReplacer(":9090", "127.0.0.1:0", ":9091", "127.0.0.1:0", ":8330", ":0").Replace(arg))
	}
	for _, e := range c.Env {
		env = append(env, e.Name+"="+e.Value)
	}
	return start(t, args, env)
}

// The program takes the arguments of all containers and the text of the ConfigMap. What the probes, the PodMonitor and
// the proxy ask for is there.
func TestContainersRun(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../examples/compose/rota.yaml")
	if err != nil {
		t.Fatal(err)
	}
	own := "config: |\n  " + strings.ReplaceAll(string(text), "\n", "\n  ")
	for name, texts := range map[string][]string{
		"everything":      {everything, own},
		"forwarded":       {everything, own, "console: {allowChanges: false, oidc: {issuerURL: ''}}"},
		"no own_sign":     {everything, own, "worker: {extraArgs: []}\nconsole: {extraArgs: []}"},
		"without sidecar": {everything, own, "witness: {enabled: false}"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, texts...)
			n.makeOrders(t)
			n.start(t, "shop-migrate", "migrate").wantExit(0)
			n.start(t, "shop-migrate", "apply").wantExit(0)
			n.wantApplied(t, name != "no own_sign")
			stops := []*process{n.start(t, "shop", "worker")}
			if name != "without sidecar" {
				stops = append(stops, n.start(t, "shop", "witness"))
			}
			n.wantServed(t, stops[0].address(workerAddress), stops[0].address(probesAddress))
			console := n.start(t, "shop-console", "console")
			wantConsole(t, "http://"+console.address(consoleAddress)+"/", name != "forwarded")
			for _, p := range append(stops, console) {
				p.signal()
				p.wantExit(0)
			}
		})
	}
}

// wantApplied checks that the settings are applied before the first worker starts, in the environment of the workers.
func (n *node) wantApplied(t *testing.T, test bool) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(n.root, "shop.db"))
	if err != nil {
		t.Fatal(err)
	}
	var sign string
	err = db.QueryRowContext(t.Context(), "SELECT DISTINCT own_sign FROM schedule_queue").Scan(&sign)
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	if sign == "TEST" != test {
		t.Errorf("the queues are those of %s: want TEST %t", sign, test)
	}
}

// makeOrders makes the table that the configuration works on.
func (n *node) makeOrders(t *testing.T) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(n.root, "shop.db"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.ExecContext(t.Context(), "CREATE TABLE orders (id INTEGER PRIMARY KEY, state TEXT, settled_by TEXT)")
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

// wantServed checks what a worker serves at the address of its pages and at that of its probes.
func (n *node) wantServed(t *testing.T, pages, probes string) {
	t.Helper()
	c := n.container(t, "shop", "worker")
	live, ready := c.LivenessProbe.HTTPGet, c.ReadinessProbe.HTTPGet
	metrics := of[monitoring.PodMonitor](n.all)[0].Spec.PodMetricsEndpoints[0]
	if got := live.Path + live.Port.String() + " " + ready.Path + ready.Port.String() + " " + metrics.Path + *metrics.Port; got != "/livezprobes /readyzprobes /metricshttp" {
		t.Errorf("asked for %s", got)
	}
	for _, url := range []string{probes + live.Path, probes + ready.Path, pages + metrics.Path} {
		eventually(t, url+" is served", func() bool {
			status, _ := get(t, "http://"+url)
			return status == 200
		})
	}
	if c.LivenessProbe.TimeoutSeconds < 2 || c.ReadinessProbe.TimeoutSeconds < 3 { // /readyz waits 2 s for the database
		t.Errorf("the probes wait %d s and %d s", c.LivenessProbe.TimeoutSeconds, c.ReadinessProbe.TimeoutSeconds)
	}
	for name, flag := range map[string]string{"http": "--http", "probes": "--probes"} {
		i := slices.IndexFunc(c.Ports, func(p core.ContainerPort) bool { return p.Name == name })
		if at := c.Args[slices.Index(c.Args, flag)+1]; at != ":"+strconv.Itoa(int(c.Ports[i].ContainerPort)) {
			t.Errorf("the worker has the port %d for %s, and serves at %s", c.Ports[i].ContainerPort, name, at)
		}
	}
}

// wantConsole checks whom the console serves: everybody, or, behind a proxy, the people that the proxy names.
func wantConsole(t *testing.T, page string, proxied bool) {
	t.Helper()
	nobody, _ := get(t, page)
	ann, text := get(t, page, "X-Forwarded-Email", "ann@example.com")
	if (nobody == 200) == proxied || ann != 200 || strings.Contains(text, "ann@example.com") != proxied {
		t.Errorf("behind a proxy %t: the console answers %d to nobody, and to Ann %d\n%s", proxied, nobody, ann, text)
	}
}

// oauth2-proxy takes its arguments, hands requests to the console, and serves the probes at its port.
func TestProxyArguments(t *testing.T) {
	t.Parallel()
	all := objectsOf(t, everything)
	n := node{pods: pods(all)}
	c, console := n.container(t, "shop-console", "oauth2-proxy"), n.container(t, "shop-console", "console")
	flags := proxy.NewLegacyFlagSet()
	if err := flags.Parse(c.Args); err != nil {
		t.Fatal(err)
	}
	legacy := proxy.NewLegacyOptions()
	if err := proxy.Load("", flags, legacy); err != nil {
		t.Fatal(err)
	}
	o, err := legacy.ToOptions()
	if err != nil {
		t.Fatal(err)
	}
	upstream, err := url.Parse(o.UpstreamServers.Upstreams[0].URI)
	if err != nil || !slices.Contains(console.Args, upstream.Host) || upstream.Scheme != "http" {
		t.Errorf("the proxy asks %s (%v), and the console has %v", upstream, err, console.Args)
	}
	if o.Server.BindAddress != ":"+strconv.Itoa(int(c.Ports[0].ContainerPort)) || o.PingPath != c.LivenessProbe.HTTPGet.Path ||
		o.ReadyPath != c.ReadinessProbe.HTTPGet.Path {
		t.Errorf("the proxy serves %s, %s at %s", o.PingPath, o.ReadyPath, o.Server.BindAddress)
	}
	provider := o.Providers[0]
	if provider.OIDCConfig.IssuerURL != "https://id.example.com" || provider.ClientID != "rota" || !slices.Equal(o.EmailDomains, []string{"example.com"}) {
		t.Errorf("the provider is %+v, for %v", provider, o.EmailDomains)
	}
	i := slices.Index(console.Args, "--user-header")
	header := console.Args[i+1]
	if !slices.ContainsFunc(o.InjectRequestHeaders, func(h proxy.Header) bool {
		return h.Name == header && (h.PreserveRequestValue == nil || !*h.PreserveRequestValue)
	}) {
		t.Errorf("the console reads %s, which the proxy does not replace: %+v", header, o.InjectRequestHeaders)
	}
}
