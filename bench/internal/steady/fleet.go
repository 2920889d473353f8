package steady

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/dutyrota/rota/bench/internal/stage"
)

// orderVariable is the environment variable that holds the order of a process.
const orderVariable = "ROTA_BENCH_STEADY"

// order tells a process what to do.
type order struct {
	Peer      string
	Kind, URL string
	Number    int // of the process
	Processes int
}

// IsWorker reports whether this process is a worker.
func IsWorker() bool { return os.Getenv(orderVariable) != "" }

// Work runs the worker of a peer until ctx is done.
func Work(ctx context.Context) error {
	var o order
	if err := json.Unmarshal([]byte(os.Getenv(orderVariable)), &o); err != nil {
		return fmt.Errorf("read the order: %w", err)
	}
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1)) // the benchmark writes nothing; its end closes it
		os.Exit(3)
	}()
	for _, p := range peers {
		if p.name == o.Peer && p.command != nil {
			return p.command(ctx, o)
		}
	}
	return fmt.Errorf("no peer %q", o.Peer)
}

// fleet is the processes of a peer.
type fleet struct {
	processes []*exec.Cmd
	inputs    []io.Closer
}

// start starts the processes. They end with ctx.
func start(ctx context.Context, t *table, p peer, o Options) (*fleet, error) {
	f := &fleet{}
	if p.command == nil {
		return f, nil
	}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	for n := range o.Processes {
		text, err := json.Marshal(order{Peer: p.name, Kind: t.db.Server.Kind, URL: t.db.URL, Number: n, Processes: o.Processes})
		if err != nil {
			return nil, errors.Join(err, f.stop())
		}
		c := exec.CommandContext(ctx, program)
		c.Env, c.Stderr = append(os.Environ(), orderVariable+"="+string(text)), os.Stderr
		input, err := c.StdinPipe()
		if err == nil {
			err = c.Start()
		}
		if err != nil {
			return nil, errors.Join(err, f.stop())
		}
		f.processes, f.inputs = append(f.processes, c), append(f.inputs, input)
	}
	return f, nil
}

// cpu returns the processor time of the processes so far.
func (f *fleet) cpu() (sum time.Duration) {
	for _, c := range f.processes {
		sum += stage.ProcessCPU(c.Process.Pid)
	}
	return sum
}

// stop asks the processes to end, and waits until they have.
func (f *fleet) stop() error {
	var errs []error
	for _, c := range f.processes {
		errs = append(errs, c.Process.Signal(syscall.SIGTERM))
	}
	for _, c := range f.processes {
		errs = append(errs, c.Wait())
	}
	for _, input := range f.inputs {
		_ = input.Close() // Wait may have closed it
	}
	return errors.Join(errs...)
}
