package main

import (
	"bytes"
	"database/sql"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	_ "github.com/lib/pq"
	"go.yaml.in/yaml/v3"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/testdb"
)

const composeFile = "../../examples/compose/compose.yaml"

// loadCompose loads the file as docker compose does.
func loadCompose(t *testing.T) *types.Project {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{composeFile}, cli.WithInterpolation(false), cli.WithResolvedPaths(true))
	if err != nil {
		t.Fatal(err)
	}
	p, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The files that containers mount are there, and so are the folder and the Dockerfile of the image.
func TestComposeFiles(t *testing.T) {
	t.Parallel()
	exists := func(what, file string) {
		if _, err := os.Stat(file); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	for name, s := range loadCompose(t).Services {
		for _, v := range s.Volumes {
			exists(name, v.Source)
		}
		if s.Build != nil {
			exists(name, filepath.Join(s.Build.Context, "go.mod"))
			exists(name, filepath.Join(s.Build.Context, s.Build.Dockerfile))
		}
	}
}

// source returns the file that a service has mounted at a path.
func source(t *testing.T, s types.ServiceConfig, target string) string {
	t.Helper()
	for _, v := range s.Volumes {
		if rest, found := strings.CutPrefix(target, v.Target); found {
			return filepath.Join(v.Source, rest)
		}
	}
	t.Fatalf("%s has nothing at %s", s.Name, target)
	return ""
}

// A worker has time to drain: what its configuration says, the grace, and 5 s for the database.
func TestComposeLeavesTimeToDrain(t *testing.T) {
	t.Parallel()
	const beyond = 5*time.Second + 5*time.Second // the grace is the default of manager.Config.Grace
	worker := loadCompose(t).Services["worker"]
	text, err := os.ReadFile(source(t, worker, "/etc/rota/rota.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Tasks map[string]struct {
			DrainTimeout time.Duration `yaml:"drain_timeout"`
		}
	}
	if err := yaml.Unmarshal(text, &file); err != nil || len(file.Tasks) == 0 {
		t.Fatalf("%d tasks (%v)", len(file.Tasks), err)
	}
	for name, task := range file.Tasks {
		want := center.Settings{DrainTimeout: task.DrainTimeout}.WithDefaults().DrainTimeout + beyond
		if got := worker.StopGracePeriod; got == nil || time.Duration(*got) < want {
			t.Errorf("Docker kills a worker after %v, and %s needs %s", got, name, want)
		}
	}
}

// startService starts the program of a service: on the given database, with the mounted files, and at a free port.
func startService(t *testing.T, s types.ServiceConfig, database string) *process {
	t.Helper()
	var args, env []string
	for _, arg := range s.Command {
		if strings.HasPrefix(arg, "/") {
			arg = source(t, s, arg)
		}
		if strings.Contains(arg, ":9090") || strings.Contains(arg, ":8330") {
			arg = "127.0.0.1:0"
		}
		args = append(args, arg)
	}
	for name, value := range s.Environment {
		if u, err := url.Parse(*value); name != "ROTA_DATABASE" || err != nil || u.User.String() != "shop:shop" || u.Path != "/shop" {
			t.Errorf("%s has %s=%s: the database of postgres is another one", s.Name, name, *value)
		}
		env = append(env, name+"="+database)
	}
	return start(t, args, env)
}

// The services of Rota do the work that orders.sql makes, in the order in which compose starts them. Prometheus finds the
// metrics of the workers.
func TestComposeWorks(t *testing.T) {
	t.Parallel()
	p := loadCompose(t)
	database := testdb.URL(t, testdb.Postgres)
	db, err := sql.Open("postgres", database)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	orders, err := os.ReadFile(source(t, p.Services["postgres"], "/docker-entrypoint-initdb.d/orders.sql"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), string(orders)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"migrate": "postgres service_healthy", "apply": "migrate service_completed_successfully",
		"worker": "apply service_completed_successfully", "console": "migrate service_completed_successfully",
	} {
		for on, d := range p.Services[name].DependsOn {
			if got := on + " " + d.Condition; got != want {
				t.Errorf("%s waits for %s, want %s", name, got, want)
			}
		}
	}
	startService(t, p.Services["migrate"], database).wantExit(0)
	// An earlier deployment had another number, and its workers wrote it. The new one applies its own.
	const rate = "UPDATE schedule_task_type SET rate_per_second = 1 WHERE task_type = 'settle'"
	startService(t, p.Services["apply"], database).wantExit(0)
	if _, err := db.ExecContext(t.Context(), rate); err != nil {
		t.Fatal(err)
	}
	startService(t, p.Services["apply"], database).wantExit(0)
	var applied float64
	err = db.QueryRowContext(t.Context(), "SELECT rate_per_second FROM schedule_task_type WHERE task_type = 'settle'").Scan(&applied)
	if err != nil || applied != 100 {
		t.Errorf("the rate in force is %v (%v), want that of rota.yaml", applied, err)
	}
	var started []*process
	for range *p.Services["worker"].Deploy.Replicas {
		started = append(started, startService(t, p.Services["worker"], database))
	}
	console := startService(t, p.Services["console"], database)
	eventually(t, "each worker settles orders", func() bool {
		var n int
		if err := db.QueryRowContext(t.Context(), "SELECT count(DISTINCT settled_by) FROM orders").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n == len(started) && n == 3
	})
	// It shows what it has read within the last two seconds, and may have read before a worker wrote the task type.
	eventually(t, "the console shows the task type", func() bool {
		status, _ := get(t, "http://"+console.address(consoleAddress)+"/task?task=settle")
		return status == 200
	})
	scrape := scrapes(t, p)
	for _, worker := range started {
		if status, text := get(t, "http://"+worker.address(workerAddress)+scrape); status != 200 || !strings.Contains(text, "rota_queues_owned") {
			t.Errorf("a worker answers %d to Prometheus\n%s", status, text)
		}
	}
	for _, s := range append(started, console) {
		s.signal()
		s.wantExit(0)
		if log := s.output(); strings.Contains(log, "no index serves it") {
			t.Errorf("orders.sql has an index for the select of rota.yaml\n%s", log)
		}
	}
}

// scrapes checks the configuration of Prometheus, and returns the path that it asks the workers for.
func scrapes(t *testing.T, p *types.Project) string {
	t.Helper()
	const file = "/etc/prometheus/prometheus.yml"
	text, err := os.ReadFile(source(t, p.Services["prometheus"], file))
	if err != nil {
		t.Fatal(err)
	}
	var c struct {
		Global struct {
			Scrape   string `yaml:"scrape_interval"`
			Evaluate string `yaml:"evaluation_interval"`
		}
		RuleFiles     []string `yaml:"rule_files"`
		ScrapeConfigs []struct {
			Name        string `yaml:"job_name"`
			MetricsPath string `yaml:"metrics_path"`
			DNS         []struct {
				Names   []string
				Type    string
				Port    int
				Refresh string `yaml:"refresh_interval"`
			} `yaml:"dns_sd_configs"`
		} `yaml:"scrape_configs"`
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true) // Prometheus refuses a name that it does not know
	if err := decoder.Decode(&c); err != nil {
		t.Fatal(err)
	}
	source(t, p.Services["prometheus"], path.Join(path.Dir(file), c.RuleFiles[0]))
	job := c.ScrapeConfigs[0]
	worker := p.Services["worker"]
	if dns := job.DNS[0]; dns.Port != 9090 || !slices.Contains(worker.Command, ":9090") || !slices.Equal(dns.Names, []string{worker.Name}) {
		t.Errorf("Prometheus asks %v, the worker is %v", dns, worker.Command)
	}
	if job.MetricsPath == "" {
		return "/metrics" // as Prometheus has it
	}
	return job.MetricsPath
}

// Grafana asks the Prometheus of the project, and finds the dashboard.
func TestComposeDashboard(t *testing.T) {
	t.Parallel()
	p := loadCompose(t)
	grafana := p.Services["grafana"]
	read := func(file string, v any) {
		t.Helper()
		text, err := os.ReadFile(source(t, grafana, "/etc/grafana/provisioning/"+file))
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(text, v); err != nil {
			t.Fatal(err)
		}
	}
	var sources struct{ Datasources []struct{ Type, URL string } }
	read("datasources/prometheus.yaml", &sources)
	u, err := url.Parse(sources.Datasources[0].URL)
	if err != nil || sources.Datasources[0].Type != "prometheus" {
		t.Fatalf("%+v (%v)", sources, err)
	}
	if s, ok := p.Services[u.Hostname()]; !ok || s.Ports[0].Published != u.Port() {
		t.Errorf("Grafana asks %s", u)
	}
	var dashboards struct {
		Providers []struct{ Options struct{ Path string } }
	}
	read("dashboards/rota.yaml", &dashboards)
	file := source(t, grafana, path.Join(dashboards.Providers[0].Options.Path, "rota.json"))
	text, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(text), `"uid": "rota"`) {
		t.Errorf("%s is not the dashboard at /d/rota (%v)", file, err)
	}
}
