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
	"runtime/debug"
	"strings"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/internal/human"
	"github.com/dutyrota/rota/ops"
)

// The sizes of the demo. queueCount, ownSign and the intervals are also in rota.yaml.
const (
	orderCount   = 20_000
	queueCount   = 8
	firstWorkers = 3
	ownSign      = "DEMO"

	heartbeatInterval = 500 * time.Millisecond
	judgeDeadInterval = 6 * time.Second // a machine that is busy with other work stops no worker for that long

	// takeOverPromise is how long a crash may leave queues idle.
	takeOverPromise = judgeDeadInterval + 3*heartbeatInterval
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

// Run shows the demo and returns nil if the proof holds. When ctx ends, Run kills the workers, removes what it made and
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
	defer func() {
		if o.Keep == "" && os.Remove(folder) == nil {
			return // it was empty: the database was refused
		}
		if o.Keep != "" || err != nil && ctx.Err() == nil {
			printf(o.Out, "Files kept in %s\n", folder)
			return
		}
		err = errors.Join(err, os.RemoveAll(folder))
	}()
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	limited, cancel := context.WithTimeoutCause(ctx, o.Timeout, fmt.Errorf("not within --timeout %s", o.Timeout))
	defer cancel()
	return play(ctx, limited, o, folder)
}

// newFolder makes the directory keep, or a temporary one.
func newFolder(keep string) (path string, err error) {
	if keep == "" {
		return os.MkdirTemp("", "rota-demo-")
	}
	path, err = filepath.Abs(keep)
	if err == nil {
		err = os.MkdirAll(path, 0o700)
	}
	list, readErr := os.ReadDir(path)
	if err = cmp.Or(err, readErr); err == nil && len(list) > 0 {
		err = fmt.Errorf("the directory must be empty or new, but contains %s", list[0].Name())
	}
	if err != nil {
		return "", fmt.Errorf("--keep %s: %w", keep, err)
	}
	return path, nil
}

// play makes the tables and rota.yaml, lets the workers work and prints the proof. The time limit is that of ctx.
func play(unlimited, ctx context.Context, o Options, folder string) (err error) {
	url := cmp.Or(o.Database, "sqlite:"+filepath.Join(folder, "rota.db"))
	db, err := openDatabase(ctx, url)
	if err != nil {
		return err
	}
	defer func() {
		if o.Database != "" {
			err = errors.Join(err, db.leave(ctx, o.Out, o.Keep != ""))
		}
		err = errors.Join(err, db.Close())
	}()
	c, err := center.Open(ctx, anydb.URL(url), center.Options{OwnSign: ownSign, Schema: center.SchemaCreate})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := errors.Join(fillOrders(ctx, db.DB), writeConfig(folder, url)); err != nil {
		return err
	}
	s := &story{client: ops.New(c), out: o.Out, began: time.Now(), fleet: &fleet{program: o.Program, folder: folder}}
	s.events = s.client.Events().Follow(ops.EventFilter{}, 100)
	printf(o.Out, introduction, db.server, human.Number(orderCount), queueCount)
	if o.Console != nil {
		address, stop, err := o.Console(ctx, c)
		if err != nil {
			return err
		}
		defer stop()
		printf(o.Out, "The console: %s\n\n", address)
	}
	defer s.fleet.kill()
	findings, err := s.tell(ctx)
	if err != nil {
		return err
	}
	if err := report(o.Out, findings, o.Proof); err != nil {
		return err
	}
	if o.Console != nil {
		return s.goOn(unlimited)
	}
	if o.Keep != "" || o.Database == "" {
		printf(o.Out, "%s", next(o.Keep))
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

// next returns three commands that work when a user pastes them, in this order. keep is the directory that the user has
// kept, or empty.
func next(keep string) string {
	program := quote(os.Args[0])
	if strings.Contains(os.Args[0], "go-build") { // `go run` starts a file in the build cache
		program = "go run github.com/dutyrota/rota/cmd/rota"
		if info, ok := debug.ReadBuildInfo(); ok && strings.HasPrefix(info.Main.Version, "v") {
			program += "@" + info.Main.Version // outside of a checkout
		}
	}
	config := " -c " + quote(filepath.Join(cmp.Or(keep, "demo-files"), configName)) + "\n"
	first := "- Read what has happened:\n    " + program + " event list" + config
	if keep == "" {
		first = "- Run the demo again and keep its database and rota.yaml:\n    " + program + " demo --keep demo-files\n"
	}
	return "\nWhat to do next:\n" + first +
		"- See the queues. EPOCH rises with each change of the owner. The database\n" +
		"  rejects what a worker writes under an old epoch:\n    " + program + " queue list" + config +
		"- Start a worker (Ctrl-C ends it). rota.yaml has its SQL: put your own there.\n    " + program + " worker" + config
}

// quote returns the word as a shell reads it.
func quote(word string) string {
	if !strings.ContainsAny(word, " \t\"'$&()*;<>?[]`{|}~#!") {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
