package demo

import (
	"cmp"
	"context"
	_ "embed" // for rota.yaml
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/internal/human"
	"github.com/dutyrota/rota/ops"
)

// The sizes of the demo. queueCount is also in rota.yaml.
const (
	orderCount = 20_000
	queueCount = 8
)

const introduction = `Rota demo on %s

One table with %s orders is divided into %d queues. Each queue has one owner
at a time: the worker that settles its orders. The workers pause between their
selects, so that you can watch. This is no benchmark.

`

// DefaultTimeout is the time limit of a demo. A demo takes about 15 s.
const DefaultTimeout = 2 * time.Minute

// Options are the user's choices.
type Options struct {
	// Database is the URL of a database on a server that has no tables named orders or schedule_... yet. Defaults to a
	// SQLite file in the folder of Keep.
	Database string

	// Keep is an empty or missing directory for rota.yaml, the workers' logs and the SQLite file. The demo leaves them,
	// and its tables in Database. Defaults to a temporary folder, which the demo removes at the end unless it fails; it
	// removes its tables from Database in any case.
	Keep string

	// Proof prints the SELECTs of the proof and their answers. Without it, only those of a false claim are printed.
	Proof bool

	// Timeout ends the demo as a failure. Defaults to DefaultTimeout.
	Timeout time.Duration

	// Console serves the console of the demo until stop, and returns its address. With it the workers go on after the
	// proof, with new orders, until the context of Run ends. Defaults to no console.
	Console func(ctx context.Context, c *center.Center) (address string, stop func(), err error)

	// Out gets what happens and the proof. The demo writes to it from one goroutine.
	Out io.Writer

	// Program is started as `PROGRAM worker -c rota.yaml`. Defaults to the running program.
	Program string
}

// Run shows the demo and returns nil if the proof holds. When ctx ends, Run ends the workers, removes what it made and
// returns an error. It leaves no process behind, on Linux not even when it is killed itself.
func Run(ctx context.Context, o Options) (err error) {
	if strings.HasPrefix(strings.ToLower(o.Database), "sqlite:") {
		return errors.New("--database: the demo makes a SQLite file of its own; --keep keeps it")
	}
	if o.Program == "" {
		if o.Program, err = os.Executable(); err != nil {
			return fmt.Errorf("find the program to start as worker: %w", err)
		}
	}
	folder, err := newFolder(o.Keep)
	if err != nil {
		return err
	}
	db, err := openDatabase(ctx, cmp.Or(o.Database, "sqlite:"+filepath.Join(folder, "rota.db")))
	if err != nil {
		if o.Keep == "" {
			_ = os.Remove(folder) // it is empty, unless it has what is left of a SQLite file
		}
		return err
	}
	defer func() {
		if o.Database != "" && o.Keep == "" {
			err = errors.Join(err, db.removeTables(ctx, o.Out))
		}
		err = errors.Join(err, db.Close())
		if o.Keep != "" || err != nil && ctx.Err() == nil {
			printf(o.Out, "Files kept in %s\n", folder)
		} else {
			err = errors.Join(err, os.RemoveAll(folder))
		}
	}()
	return play(ctx, o, folder, db)
}

// newFolder makes the directory keep, or a temporary one.
func newFolder(keep string) (path string, err error) {
	if keep == "" {
		return os.MkdirTemp("", "rota-demo-")
	}
	if list, _ := os.ReadDir(keep); len(list) > 0 { // if it is no directory, MkdirAll says so
		return "", fmt.Errorf("--keep %s: the directory must be empty or new, but contains %s", keep, list[0].Name())
	}
	if path, err = filepath.Abs(keep); err == nil {
		err = os.MkdirAll(path, 0o700)
	}
	return path, err
}

// play makes the tables and rota.yaml, tells the story and prints the proof.
func play(ctx context.Context, o Options, folder string, db *database) error {
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	limited, stop := context.WithTimeoutCause(ctx, o.Timeout, fmt.Errorf("not within --timeout %s", o.Timeout))
	defer stop()
	c, err := center.Open(limited, anydb.URL(db.url), center.Options{OwnSign: "DEMO", Schema: center.SchemaCreate})
	if err != nil {
		return err
	}
	defer c.Close()
	if err := errors.Join(db.fillOrders(limited), writeConfig(folder, db.url)); err != nil {
		return err
	}
	printf(o.Out, introduction, db.address, human.Number(orderCount), queueCount)
	if o.Console != nil {
		address, stop, err := o.Console(limited, c)
		if err != nil {
			return err
		}
		defer stop()
		printf(o.Out, "The console: %s\n\n", address)
	}
	runtime.LockOSThread() // Linux kills the workers when the thread ends that started them
	defer runtime.UnlockOSThread()
	s := &story{client: ops.New(c), db: db, out: o.Out, program: o.Program, folder: folder, began: time.Now()}
	s.events = s.client.Events().Follow(ops.EventFilter{}, 100)
	defer s.running.Wait()
	lastEvent, err := s.tell(limited)
	if err != nil {
		return err
	}
	if err := prove(limited, db, claims(lastEvent), o.Out, o.Proof); err != nil {
		return err
	}
	if o.Console != nil {
		return s.goOn(ctx)
	}
	if o.Keep != "" || o.Database == "" {
		printNext(o.Out, o.Keep)
	}
	return nil
}

const configName = "rota.yaml"

//go:embed rota.yaml
var configText string

// writeConfig writes the workers' rota.yaml.
func writeConfig(folder, url string) error {
	// YAML has one escape within single quotes.
	text := strings.Replace(configText, "DATABASE", strings.ReplaceAll(url, "'", "''"), 1)
	return os.WriteFile(filepath.Join(folder, configName), []byte(text), 0o600)
}

const next = `
What to do next:
- %s
- See the queues. EPOCH rises with each change of the owner. The database
  rejects what a worker writes under an old epoch:
    %s queue list -c %s
- Start a worker (Ctrl-C ends it). rota.yaml has its SQL: put your own there.
    %[2]s worker -c %[3]s
`

// printNext prints three commands that work when a user pastes them, in this order. keep is the directory that the user
// has kept, or empty.
func printNext(out io.Writer, keep string) {
	// A shell reads a character behind a backslash as it is.
	quote := func(word string) string { return regexp.MustCompile(`[^\w/.:@+-]`).ReplaceAllString(word, `\$0`) }
	program := quote(os.Args[0])
	if info, ok := debug.ReadBuildInfo(); ok && strings.Contains(program, "go-build") { // `go run` starts a cached file
		program = "go run " + strings.TrimSuffix(info.Path+"@"+info.Main.Version, "@(devel)")
	}
	config := quote(filepath.Join(cmp.Or(keep, "demo-files"), configName))
	first := "Read what has happened:\n    " + program + " event list -c " + config
	if keep == "" {
		first = "Run the demo again and keep its database and rota.yaml:\n    " + program + " demo --keep demo-files"
	}
	printf(out, next, first, program, config)
}

// printf drops the error of writing: the command gets SIGPIPE.
func printf(out io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(out, format, args...) }
