package demo

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
)

// What is shown. The settings that pace it stand in rota.yaml.
const (
	orderCount   = 20_000
	queueCount   = 8
	firstWorkers = 3

	heartbeatInterval = 500 * time.Millisecond
	judgeDeadInterval = 2500 * time.Millisecond

	// takeOverPromise is how long a crash may leave queues idle.
	takeOverPromise = judgeDeadInterval + 3*heartbeatInterval
)

// DefaultTimeout is the time that a demo gets. It needs about 10 s.
const DefaultTimeout = 2 * time.Minute

// Options are what the user may choose.
type Options struct {
	// Database is the URL of a PostgreSQL or MySQL server, or of a SQLite file that does not exist yet. Defaults
	// to a SQLite file in the demo's folder.
	Database string

	// Keep is an empty or missing directory for rota.yaml, the workers' logs and the SQLite file, which then stay
	// there. Defaults to a temporary folder that is removed at the end, unless something was off.
	Keep string

	// Timeout ends the demo, as a failure. Defaults to DefaultTimeout.
	Timeout time.Duration

	// Plain asks for lines instead of a live view, also on a terminal.
	Plain bool

	// Out gets the view and the proof. It is never written to concurrently.
	Out io.Writer

	// Program is what is started as `PROGRAM worker -c rota.yaml`. Defaults to the running program.
	Program string
}

func (o Options) withDefaults() (Options, error) {
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Timeout < 0 {
		return o, fmt.Errorf("--timeout (%s) must be above 0", o.Timeout)
	}
	if o.Program != "" {
		return o, nil
	}
	program, err := os.Executable()
	if err != nil {
		return o, fmt.Errorf("find the program to start as worker: %w", err)
	}
	o.Program = program
	return o, nil
}

// demo is what has to be ended again.
type demo struct {
	Options
	folder *folder
	place  *place
	center *center.Center
	crew   *crew
	view   view
}

// Run shows the demo and returns nil if everything was proved. It blocks; when ctx ends, it ends the workers, removes
// what it made and returns an error. It leaves no process behind, and on Linux not even when it is killed itself.
func Run(ctx context.Context, o Options) (err error) {
	o, err = o.withDefaults()
	if err != nil {
		return err
	}
	d := &demo{Options: o, crew: &crew{program: o.Program}}
	defer func() { err = d.end(ctx, err) }()
	limited, cancel := context.WithTimeoutCause(ctx, o.Timeout, fmt.Errorf("not within --timeout %s", o.Timeout))
	defer cancel()
	return because(limited, d.show(limited))
}

// because adds why ctx ended, if that is why err came.
func because(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if err == nil || cause == nil || errors.Is(err, cause) {
		return err
	}
	return fmt.Errorf("%w: %w", cause, err)
}

func (d *demo) show(ctx context.Context) error {
	if err := d.prepare(ctx); err != nil {
		return err
	}
	s := &story{watch: watch{d.db()}, crew: d.crew, view: d.view}
	return s.tell(ctx, d.prove)
}

// prepare makes everything that the workers need.
func (d *demo) prepare(ctx context.Context) (err error) {
	if d.folder, err = newFolder(d.Keep); err != nil {
		return err
	}
	d.crew.folder = d.folder.path
	if d.place, err = newPlace(ctx, d.Database, d.folder.path); err != nil {
		return err
	}
	d.center, err = center.Open(ctx, anydb.URL(d.place.url), center.Options{OwnSign: ownSign, Schema: center.SchemaCreate})
	if err != nil {
		return err
	}
	if err := createOrders(ctx, d.db()); err != nil {
		return err
	}
	if err := d.folder.writeConfig(d.place.url); err != nil {
		return err
	}
	d.view = newView(d.Out, d.Plain, d.headline())
	return nil
}

func (d *demo) db() *sql.DB { return d.center.DB() }

func (d *demo) headline() string {
	return fmt.Sprintf("%s orders, %d queues, %s", count(orderCount), queueCount, d.place.name)
}

// prove shows what the database answered, and fails if anything is off.
func (d *demo) prove(findings []finding) error {
	d.view.close()
	return report(d.Out, findings)
}

// end undoes what was prepared, as far as it came. What was off stays for reading, unless the user broke it off.
func (d *demo) end(ctx context.Context, err error) error {
	interrupted := ctx.Err() != nil
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
	defer cancel()
	if d.view != nil {
		d.view.close()
	}
	d.crew.kill()
	errs := []error{err}
	if d.center != nil {
		errs = append(errs, d.center.Close())
	}
	if d.place != nil {
		errs = append(errs, d.place.remove(ctx))
	}
	if d.folder != nil {
		off := errors.Join(errs...) != nil
		errs = append(errs, d.folder.end(d.Out, off && !interrupted))
	}
	return errors.Join(errs...)
}
