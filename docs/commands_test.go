//go:build unix

package docs_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dutyrota/rota/internal/testdb"
)

// pageLimit is more than any page takes on a busy machine.
const pageLimit = 5 * time.Minute

// buildRota builds the program once for all pages.
var buildRota = sync.OnceValues(func() (dir string, err error) {
	if dir, err = os.MkdirTemp("", "rota-docs-"); err != nil {
		return "", err
	}
	out, err := exec.Command("go", "build", "-o", filepath.Join(dir, "rota"), "../cmd/rota").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build rota: %w\n%s", err, out)
	}
	return dir, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, err := buildRota(); err == nil {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

// repository replaces what needs the published module.
var repository = strings.NewReplacer(
	"go install github.com/dutyrota/rota/cmd/rota@latest", "true",
	"go mod init example.com/shop", `go mod init example.com/shop && go mod edit -replace "github.com/dutyrota/rota=$REPOSITORY"`,
)

// script turns the blocks of a page into one script. A sh block with a text block below it repeats its last line until
// the line prints what the text says, as a reader does who looks again.
func script(blocks []block) string {
	var s strings.Builder
	s.WriteString("set -em\n" + `until_prints() {
	for i in $(seq 100); do
		printed=$(eval "$1" 2>&1) || true
		if [[ $printed =~ $2 ]]; then return; fi
		sleep 0.2
	done
	echo "$1 prints"; echo "$printed"; echo "want $2"; exit 1
}
`)
	for i, b := range blocks {
		switch file := b.file(); {
		case b.notRun != "":
		case file != "":
			fmt.Fprintf(&s, "cat > %s <<'END_OF_FILE'\n%sEND_OF_FILE\n", file, b.text)
		case b.language == "sh":
			fmt.Fprintf(&s, "echo '== line %d'\n", b.line)
			text := repository.Replace(b.text)
			if i+1 < len(blocks) && blocks[i+1].language == "text" {
				lines := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
				last := lines[len(lines)-1]
				text = strings.Join(lines[:len(lines)-1], "") + "until_prints " + quote(last) + " " + quote(pattern(strings.TrimSuffix(blocks[i+1].text, "\n")))
			}
			s.WriteString(text + "\n")
		}
	}
	return s.String()
}

func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

var (
	inPattern = regexp.MustCompile(`\.\.\.|web\d:\w+:\w+|\b[0-9.]+s\b| +|\n|[^\w]`)
	noise     = map[string]string{"...": ".*", "\n": " *\n *"}
)

// pattern is an extended regular expression for an output: "..." is anything, web1:4711:3ce02852 is any
// server, 1.7s any duration, and the number of blanks does not matter.
func pattern(text string) string {
	return inPattern.ReplaceAllStringFunc(text, func(part string) string {
		switch {
		case noise[part] != "":
			return noise[part]
		case strings.HasPrefix(part, "web"):
			return "[^ ]+:[0-9]+:[^ ]+"
		case strings.HasSuffix(part, "s"):
			return "[0-9.]+s"
		case strings.HasPrefix(part, " "):
			return " +"
		}
		return `\` + part
	})
}

// toDatabase finds where a page says which database a reader has.
var toDatabase = regexp.MustCompile(`(?m)^export ROTA_DATABASE='.*'$`)

// The commands of the quick start run in an empty folder, one after the other, for each kind of database.
func TestFollowedToTheLetter(t *testing.T) {
	t.Parallel()
	for _, q := range quickstartPages {
		t.Run(q.page, func(t *testing.T) {
			t.Parallel()
			text := script(readBlocks(t, q.page))
			if q.kind != testdb.SQLite {
				own := "export ROTA_DATABASE=" + quote(testdb.URL(t, q.kind))
				if len(toDatabase.FindAllString(text, -1)) != 1 {
					t.Fatalf("%s does not say once which database it uses", q.page)
				}
				text = toDatabase.ReplaceAllLiteralString(text, own)
			}
			runScript(t, t.TempDir(), text)
		})
	}
}

// runScript runs a script in a process group of its own, and ends what is left of the group.
func runScript(t *testing.T, dir, text string) {
	t.Helper()
	bin, err := buildRota()
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "page.sh"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-c", `trap 'jobs -p | while read -r group; do kill -9 -- -$group; done' EXIT; source page.sh`)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "ROTA_") {
			cmd.Env = append(cmd.Env, entry)
		}
	}
	cmd.Env = append(cmd.Env, "PATH="+bin+":"+os.Getenv("PATH"), "REPOSITORY="+root, "GOFLAGS=-mod=mod", "GONOSUMDB=*")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = 5 * time.Second
	limit := time.AfterFunc(pageLimit, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) })
	defer limit.Stop()
	if err := cmd.Run(); err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
}
