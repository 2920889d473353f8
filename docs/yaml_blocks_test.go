//go:build unix

package docs_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// absentDatabases are databases of each kind to which no worker can connect: it reads and checks its file first.
var absentDatabases = []string{"postgres://127.0.0.1:1/absent", "mysql://127.0.0.1:1/absent", "sqlite:absent.db"}

// A YAML block is a rota.yaml, or keys of a sql dealer that complete the one below, or a manifest of Kubernetes. The
// worker of at least one kind of database accepts the rota.yaml.
func TestYAMLBlocks(t *testing.T) {
	t.Parallel()
	for _, page := range pages(t) {
		for _, b := range readBlocks(t, page) {
			if b.language == "yaml" && b.notRun == "" && !strings.Contains("\n"+b.text, "\nkind: ") {
				wantAccepted(t, b)
			}
		}
	}
}

type keys = map[string]any

// wantAccepted checks that a worker understands a block.
func wantAccepted(t *testing.T, b block) {
	t.Helper()
	var file keys
	if err := yaml.Unmarshal([]byte(b.text), &file); err != nil {
		t.Errorf("%s:%d: %v", b.page, b.line, err)
		return
	}
	if file["tasks"] == nil {
		dealer := keys{
			"select":  "SELECT id FROM orders WHERE state = 'NEW' AND {{mine id}} ORDER BY id LIMIT {{limit}}",
			"execute": "UPDATE orders SET state = 'SETTLED' WHERE id IN ({{keys}})",
			"key":     "id",
		}
		if file["execute_each"] != nil || file["cursor_start"] != nil {
			delete(dealer, "execute")
			dealer["execute_each"] = "UPDATE sums SET total = total + {{row.total}}"
		}
		maps.Copy(dealer, file)
		file = keys{"tasks": keys{"settle": keys{"queues": 4, "dealer": keys{"sql": dealer}}}}
	}
	delete(file, "database")
	text, err := yaml.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "rota.yaml"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	bin, err := buildRota()
	if err != nil {
		t.Fatal(err)
	}
	var refused []string
	for _, url := range absentDatabases {
		cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "rota"), "worker", "--exit-on-unreachable", "--schema", "require", "--database", url)
		cmd.Env = os.Environ()
		for _, name := range []string{"SHOP", "INBOX", "DONE", "BROKEN", "LEDGER", "COPIES"} { // env of the dealers
			cmd.Env = append(cmd.Env, name+"=x")
		}
		cmd.Dir = dir
		out, _ := cmd.CombinedOutput() // it always fails
		if cmd.ProcessState.ExitCode() == 1 && strings.Contains(string(out), "open ") {
			return
		}
		refused = append(refused, string(out))
	}
	t.Errorf("%s:%d is refused:\n%s", b.page, b.line, strings.Join(refused, ""))
}
