//go:build unix

package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
)

// grace is the default of manager.Config.Grace.
const grace = 5 * time.Second

// wantTimeToDrain checks that a supervisor kills a worker only after it has drained.
func wantTimeToDrain(t *testing.T, what, duration string) {
	t.Helper()
	got, err := time.ParseDuration(duration)
	if err != nil {
		t.Fatal(err)
	}
	least := center.Settings{}.WithDefaults().DrainTimeout + grace + 5*time.Second
	if got < least {
		t.Errorf("%s is %s, want at least %s", what, got, least)
	}
}

// The units of the packages: the worker has time to drain and ends its programs itself, and the witness runs as the user
// whose files it opens.
func TestSystemdUnits(t *testing.T) {
	t.Parallel()
	units := map[string]string{}
	for _, name := range []string{"rota.service", "rota-witness.service", "rota-console.service"} {
		text, err := os.ReadFile("../packaging/systemd/" + name)
		if err != nil {
			t.Fatal(err)
		}
		units[name] = string(text)
		wantExposureBelow3(t, name, units[name])
	}
	worker := units["rota.service"]
	wantUnit(t, "rota.service", worker, "--schema", "require")
	wantUnit(t, "rota-witness.service", units["rota-witness.service"])
	wantUnit(t, "rota-console.service", units["rota-console.service"])
	const ofPrograms = 5 * time.Second
	stop, err := time.ParseDuration(setting(t, worker, "TimeoutStopSec") + "s")
	if err != nil {
		t.Fatal(err)
	}
	wantTimeToDrain(t, "TimeoutStopSec, without the time of programs,", (stop - ofPrograms).String())
	if got := setting(t, worker, "KillMode"); got != "mixed" {
		t.Errorf("KillMode is %s: a stop signals the programs of a dealer, too", got)
	}
	if got, want := setting(t, units["rota-witness.service"], "User"), setting(t, worker, "User"); got != want {
		t.Errorf("the witness is run by %s, the workers by %s", got, want)
	}
}

// setting returns the value of a line of a unit.
func setting(t *testing.T, unit, name string) string {
	t.Helper()
	m := regexp.MustCompile(`(?m)^` + name + `=(.*)$`).FindStringSubmatch(unit)
	if m == nil {
		t.Fatalf("the unit has no %s", name)
	}
	return m[1]
}

// wantExposureBelow3 checks that systemd finds a unit well protected.
func wantExposureBelow3(t *testing.T, name, unit string) {
	t.Helper()
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Log("the unit is not rated: systemd-analyze is not installed")
		return
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(unit), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), analyze, "security", "--offline=true", "--threshold=29", path).CombinedOutput()
	if err != nil {
		t.Errorf("systemd-analyze security %s: %v, want an exposure below 3\n%s", name, err, out)
	}
}

// wantUnit checks that the program understands the arguments of a unit, together with more of them, and that systemd does
// the unit.
func wantUnit(t *testing.T, name, unit string, more ...string) {
	t.Helper()
	kind := "notify"
	if name == "rota-console.service" {
		kind = "exec" // it does not tell systemd when it serves
	}
	if !strings.Contains(unit, "\nType="+kind+"\n") {
		t.Errorf("%s is not of Type=%s", name, kind)
	}
	command := strings.TrimPrefix(setting(t, unit, "ExecStart"), "rota ")
	wantArguments(t, append(strings.Fields(strings.ReplaceAll(command, "${CREDENTIALS_DIRECTORY}", "/run/secrets/rota")), more...))

	verify, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Log("the unit is not verified: systemd-analyze is not installed")
		return
	}
	bin, err := buildRota()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(unit, "ExecStart=rota", "ExecStart="+bin+"/rota")), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), verify, "verify", "--man=no", path).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}

// wantArguments checks that the program understands its arguments: it goes on to its database, which has no tables.
func wantArguments(t *testing.T, args []string) {
	t.Helper()
	bin, err := buildRota()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("database", "sqlite:"+filepath.Join(dir, "absent.db")+"\n")
	write("rota.yaml", `tasks: {t: {queues: 1, dealer: {sql: {
		select: "SELECT id FROM t WHERE {{mine id}} LIMIT {{limit}}",
		execute: "DELETE FROM t WHERE id IN ({{keys}})", key: id}}}}`)
	line := strings.NewReplacer("/etc/rota", dir, "/run/secrets/rota", dir).Replace(strings.Join(args, " "))
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "rota"), strings.Fields(line)...)
	out, err := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(string(out), "rota migrate up") {
		t.Errorf("rota %s: %v, exit code %d\n%s", line, err, code, out)
	}
}
