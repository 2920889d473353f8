//go:build unix

package docs_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/sqlite"
	"github.com/dutyrota/rota/console"
)

// atWork are the pages whose commands look at a roster at work, or change it.
var atWork = []string{"compatibility.md", "failures.md", "operating.md", "runs.md"}

func TestEveryCommandRuns(t *testing.T) {
	run := slices.Clone(atWork)
	for _, q := range quickstartPages {
		run = append(run, q.page)
	}
	for _, page := range pages(t) {
		for _, b := range readBlocks(t, page) {
			if b.language == "sh" && b.notRun == "" && !slices.Contains(run, page) {
				t.Errorf("%s:%d: no test runs these commands: <!-- not run: REASON --> says why", page, b.line)
			}
		}
	}
}

// The roster at work has all task types that the pages name.
const rosterAtWork = `
database: sqlite:shop.db
tasks:
  settle:
    queues: 8
    splittable: true
    dealer:
      sql:
        select: SELECT id FROM orders WHERE state = 'NEW' AND {{mine id}} ORDER BY id LIMIT {{limit}}
        execute: UPDATE orders SET state = 'SETTLED' WHERE state = 'NEW' AND id IN ({{keys}})
        key: id
  regions:
    queues: [north, south]
    dealer:
      sql:
        select: SELECT id FROM orders WHERE state = {{queue}} ORDER BY id LIMIT {{limit}}
        execute: UPDATE orders SET state = 'SETTLED' WHERE id IN ({{keys}})
        key: id
  reindex:
    queues: 4
    mode: RUN
    cron: 0 0 2 * * ?
    dealer:
      sql:
        select: SELECT id FROM orders WHERE state = 'NEW' AND {{slot.date}} > '2020-01-01' AND {{mine id}} LIMIT {{limit}}
        execute: UPDATE orders SET state = 'SETTLED' WHERE state = 'NEW' AND id IN ({{keys}})
        key: id
  import:
    queues: 1
    mode: RUN
    queue_max_attempts: 1
    dealer:
      sql:
        select: SELECT id FROM orders WHERE state = 'SETTLED' AND {{mine id}} ORDER BY id LIMIT {{limit}}
        execute: UPDATE orders SET state = NULL WHERE id IN ({{keys}})
        key: id
`

// beginWork starts a worker and waits for it.
const beginWork = `
rota worker -c rota.yaml 2> worker.log &
export ROTA_DATABASE=sqlite:shop.db
until_prints 'rota worker list' 'settle +SERVING +[^ ]+ +8 '
WORKER=$(rota worker list -o csv | sed -n 's/^\([^,:]*:[0-9]*\):.*/\1/p' | head -1)
test "$WORKER"
# for_a_while runs a command that does not end by itself.
for_a_while() {
	timeout 1 "$@" || test $? = 124
}
`

// failARun leaves a failed run of import to the commands that need one.
const failARun = `rota run wait "$(rota run submit import --key failed)" || true
`

var (
	endless = regexp.MustCompile(`(?m)^(rota (?:top|console)\b[^#\n]*|rota [^#\n]*(?:--watch|-f *(?:#|$)).*)`)

	// toThisRoster replaces what a reader replaces.
	toThisRoster = strings.NewReplacer(
		"web1:4711", `"$WORKER"`,
		"run wait RUN", "run wait reindex",
		" RUN", " import",
		"--from 2026-11-01", "--from "+time.Now().AddDate(0, 0, -3).Format(time.DateOnly),
		"rota console", "rota console --http 127.0.0.1:0",
	)
)

// The commands of these pages run beside a worker that serves all task types, in the order of the page.
func TestCommandsOfARosterAtWork(t *testing.T) {
	t.Parallel()
	for _, page := range atWork {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			c, err := center.Open(t.Context(), sqlite.URL("sqlite:"+filepath.Join(dir, "shop.db")), center.Options{})
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.DB().ExecContext(t.Context(), `CREATE TABLE orders (id INTEGER PRIMARY KEY, state TEXT NOT NULL);
				CREATE INDEX orders_work ON orders (state, id); INSERT INTO orders VALUES (1, 'NEW'), (2, 'SETTLED')`)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "rota.yaml"), []byte(rosterAtWork), 0o600); err != nil {
				t.Fatal(err)
			}
			blocks := readBlocks(t, page)
			for i := range blocks {
				if blocks[i].language == "sh" {
					blocks[i].text = endless.ReplaceAllString(toThisRoster.Replace(blocks[i].text), "for_a_while $1")
				}
			}
			begin := beginWork
			if page == "runs.md" {
				begin += failARun
			}
			runScript(t, dir, strings.Replace(script(blocks), "echo '== line", begin+"echo '== line", 1))
			if page == "operating.md" {
				wantConsolePages(t, page, filepath.Join(dir, "shop.db"))
			}
		})
	}
}

var consoleAddress = regexp.MustCompile("`(/[a-z]*(?:\\?[^`]*)?)`")

// wantConsolePages checks that the console has each address that a page names.
func wantConsolePages(t *testing.T, page, file string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	c, err := center.Open(t.Context(), sqlite.URL("sqlite:"+file), center.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	h, err := console.Handler(c, console.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range consoleAddress.FindAllStringSubmatch(string(text), -1) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost"+address[1], nil)
		r.RemoteAddr = "127.0.0.1:1"
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != http.StatusOK {
			t.Errorf("%s names the page %s of the console: status %d", page, address[1], w.Code)
		}
	}
}
