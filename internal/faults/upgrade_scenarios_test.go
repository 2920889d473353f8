//go:build linux

package faults

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/schema"
)

// upgradeScenarios are upgrades while the workers work. The roster is the restored dump of the first release. The
// previous version is the newest release, and the next version is this program with one more migration of the tables.
var upgradeScenarios = []scenario{
	{name: "upgrade", play: upgrade, kinds: upgradeKinds, upgrade: true, always: true},
	{name: "cursor-upgrade", play: upgrade, kinds: upgradeKinds, upgrade: true, variant: inOrder},
	{name: "data-upgrade", play: upgrade, kinds: upgradeKinds, upgrade: true, shards: 3},
	{name: "upgrade-behind-reader", play: upgradeBehindReader, upgrade: true, slow: true},
	{name: "run-upgrade", play: upgradeInRun, kinds: upgradeKinds, upgrade: true, variant: sweeping},
	{name: "galera-upgrade", play: upgrade, kinds: galeraKinds, upgrade: true, galera: true, slow: true},
}

var upgradeKinds = slices.Concat(everywhere, []string{testdb.TiDB})

// upgrade goes to the next version in the order of docs/operating.md: first the tables, then one worker after the other.
// Workers of both versions die meanwhile, and one of the previous version starts on the new tables. Then all workers go
// back to the previous version, which the new tables allow.
func upgrade(s *stage) {
	before, after := s.versions()
	s.migrate(before, after)
	s.works(20)
	s.trapped("kill work")
	s.program = after.worker
	s.start(2)
	s.works(20)
	newest := s.workers[len(s.workers)-1]
	newest.arm("kill commit")
	s.dies(newest)
	s.program = before.worker
	s.start(1)
	s.works(20)
	for _, v := range []version{after, before} {
		s.program = v.worker
		rollingRestart(s)
		if out, err := v.run("queue", "list", taskType, "--database", s.url, "-o", "json"); err != nil || len(records(out)) != queues {
			s.t.Errorf("%v, want %d queues:\n%s", err, queues, out)
		}
	}
}

// upgradeInRun: a run that workers of the previous version have begun ends with those of the next.
func upgradeInRun(s *stage) {
	before, after := s.versions()
	inRun(func(s *stage) {
		s.migrate(before, after)
		s.kill(s.any())
		s.program = after.worker
		s.launch()
		rollingRestartInRun(s)
	})(s)
	s.succeeds(s.submit(""))
}

// upgradeBehindReader: a transaction that has read all tables stays open, so that the migration cannot change them. It
// makes way for the workers, whose heartbeats wait behind it: all keep their queues and work on.
func upgradeBehindReader(s *stage) {
	_, after := s.versions()
	epochs := s.count(`SELECT SUM(epoch) FROM schedule_queue`)
	tx, err := s.c.DB().BeginTx(s.t.Context(), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	defer tx.Rollback() // has ended, unless the scenario fails
	var n int
	if err := tx.QueryRowContext(s.t.Context(), `SELECT COUNT(*) FROM schedule_queue, schedule_server`).Scan(&n); err != nil {
		s.t.Fatal(err)
	}
	migrated := make(chan error, 1)
	go func() {
		_, err := after.run("migrate", "up", "--database", s.url)
		migrated <- err
	}()
	s.until("the migration has begun", func() bool { return s.count(`SELECT COUNT(*) FROM schedule_schema_lock WHERE holder <> ''`) == 1 })
	s.sleep(s.dead(1.5))
	s.works(20)
	select {
	case err := <-migrated:
		s.t.Errorf("the migration has ended before the reader: %v", err)
	default:
	}
	if err := tx.Rollback(); err != nil {
		s.t.Fatal(err)
	}
	if err := <-migrated; err != nil {
		s.t.Error(err)
	}
	s.works(20)
	if n := s.count(`SELECT SUM(epoch) FROM schedule_queue`); n != epochs {
		s.t.Errorf("the epochs rose by %d: a queue has changed its owner", n-epochs)
	}
}

// migrate migrates the tables. Before, programs of the next version refuse them, and afterwards those of the previous
// version still read them.
func (s workerSteps) migrate(before, after version) {
	s.t.Helper()
	refusal := fmt.Sprintf(`this program needs %d: run "rota migrate up"`, schema.Latest()+1)
	if out, err := after.run("queue", "list", "--database", s.url); err == nil || !strings.Contains(out, refusal) {
		s.t.Errorf("the next version on the old tables: %v, want %q:\n%s", err, refusal, out)
	}
	if out, err := after.run("migrate", "up", "--database", s.url); err != nil {
		s.t.Fatalf("%v:\n%s", err, out)
	}
	if out, err := before.run("doctor", "--database", s.url, "-o", "json"); !strings.HasPrefix(out, "[") {
		s.t.Errorf("the previous version on the new tables: %v:\n%s", err, out)
	}
}

func records(text string) (list []any) {
	_ = json.Unmarshal([]byte(text), &list) // the caller shows the text
	return list
}

// restore makes the roster from the dump of a first release, and migrates it to the tables of this program, with which
// the stage reads it. On TiDB, which does not take the dump of MariaDB, the stage then creates the same tables.
func (s *scene) restore(kind string) {
	s.t.Helper()
	if kind == testdb.TiDB {
		return
	}
	text, err := os.ReadFile("../../schema/testdata/v0.1/" + kind + ".sql")
	if err != nil {
		s.t.Fatal(err)
	}
	db, err := anydb.URL(s.url).Pool(sqldb.RoleSchema, sqldb.PoolOptions{Create: true})
	if err != nil {
		s.t.Fatal(err)
	}
	defer db.Close()
	statements := strings.Split(strings.TrimSpace(string(text)), ";\n")
	for _, of := range []string{"run", "run_queue", "run_item", "run_dep"} { // no worker would end the run of the dump
		statements = append(statements, "DELETE FROM schedule_"+of)
	}
	for _, statement := range statements {
		if _, err := db.ExecContext(s.t.Context(), statement); err != nil {
			s.t.Fatalf("%s: %v", statement, err)
		}
	}
	_, _, err = center.Migrate(s.t.Context(), anydb.URL(s.url))
	s.must(err)
}

// version is the programs of one version.
type version struct {
	worker string // this test program
	rota   string
}

// run returns what the program rota prints.
func (v version) run(args ...string) (string, error) {
	out, err := exec.Command(v.rota, args...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("run %s %s: %w", filepath.Base(v.rota), strings.Join(args, " "), err)
	}
	return string(out), err
}

// versions returns the previous and the next version.
func (s *scene) versions() (before, after version) {
	s.t.Helper()
	both, err := buildVersions()
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(buildDir, "source")); err != nil {
		s.t.Log("the clone has no tag of a release: the previous version is this one")
	}
	return both[0], both[1]
}

// buildDir holds the programs that buildVersions has built. TestMain removes it.
var buildDir string

// buildVersions builds the programs of the previous version and of the next.
var buildVersions = sync.OnceValues(func() (both [2]version, err error) {
	root, err := filepath.Abs("../..")
	if err != nil {
		return both, err
	}
	if buildDir, err = os.MkdirTemp("", "rota-versions-"); err != nil {
		return both, err
	}
	overlay, err := laterTables(root)
	if err != nil {
		return both, err
	}
	source, err := previousSource(root)
	if err != nil {
		return both, err
	}
	if both[0], err = build(source, "previous"); err != nil {
		return both, err
	}
	both[1], err = build(root, "next", "-overlay="+overlay)
	return both, err
})

// previousSource returns the source tree of the newest release that this version follows. Without a release, or in a
// clone without its tag, it returns that of this program.
func previousSource(root string) (dir string, err error) {
	tag, err := exec.Command("git", "-C", root, "describe", "--tags", "--abbrev=0", "--match=v[0-9]*", "HEAD~").Output()
	if err != nil {
		return root, nil
	}
	dir = filepath.Join(buildDir, "source")
	archive := dir + ".tar"
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", err
	}
	if err := execute("git", "-C", root, "archive", "-o", archive, strings.TrimSpace(string(tag))); err != nil {
		return "", err
	}
	return dir, execute("tar", "-C", dir, "-xf", archive)
}

// laterTables writes the file that makes the go command see one more migration of the tables.
func laterTables(root string) (file string, err error) {
	var overlay struct{ Replace map[string]string }
	overlay.Replace = map[string]string{}
	for _, dialect := range []string{"postgres", "mysql", "sqlite"} {
		name := filepath.Join(root, "schema", dialect, fmt.Sprintf("%05d_later.sql", schema.Latest()+1))
		overlay.Replace[name] = filepath.Join(root, "schema", "testdata", "later", dialect, "00001_later.sql")
	}
	text, err := json.Marshal(overlay)
	if err != nil {
		return "", err
	}
	file = filepath.Join(buildDir, "overlay.json")
	return file, os.WriteFile(file, text, 0o644)
}

// build builds the programs of one version from a source tree.
func build(source, name string, flags ...string) (version, error) {
	v := version{worker: filepath.Join(buildDir, name+"-worker"), rota: filepath.Join(buildDir, name+"-rota")}
	test := append([]string{"go", "-C", source, "test", "-c", "-o", v.worker}, flags...)
	if err := execute(append(test, "./internal/faults")...); err != nil {
		return v, err
	}
	program := append([]string{"go", "-C", source, "build", "-buildvcs=false", "-o", v.rota}, flags...)
	return v, execute(append(program, "./cmd/rota")...)
}

func execute(command ...string) error {
	if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(command, " "), err, out)
	}
	return nil
}
