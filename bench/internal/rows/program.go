package rows

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// rotaYAML is the file of the README, for a number of workers.
const rotaYAML = `database: %q
apply_settings: true
tasks:
  %s:
    queues: %d
    execute_number: %d
    thread_number: %d
    dealer:
      sql:
        select: SELECT id FROM orders WHERE state = 'NEW' AND {{mine id}} ORDER BY id LIMIT {{limit}}
        execute: UPDATE orders SET state = 'SETTLED', settled_by = {{server}} WHERE id IN ({{keys}}) AND (state = 'NEW') IS TRUE
        key: id
`

// buildProgram builds rota in a directory. The module of the benchmarks does not require what the program does.
func buildProgram(ctx context.Context, dir string) (path string, err error) {
	path = filepath.Join(dir, "rota")
	module, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/dutyrota/rota").Output()
	if err != nil {
		return "", fmt.Errorf("find the module of rota: %w", err)
	}
	out, err := exec.CommandContext(ctx, "go", "-C", string(bytes.TrimSpace(module)), "build", "-o", path, "./cmd/rota").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build rota: %w\n%s", err, out)
	}
	return path, nil
}

// bySQL runs a process of rota worker with the sql dealer.
func bySQL(ctx context.Context, t *task) (err error) {
	file := filepath.Join(filepath.Dir(t.program), "rota.yaml")
	text := fmt.Sprintf(rotaYAML, t.db.URL, t.taskType(), queues, batch, t.workers)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	var log bytes.Buffer
	worker := exec.CommandContext(ctx, t.program, "worker", "-c", file)
	worker.Stdout, worker.Stderr = &log, &log
	worker.Cancel = func() error { return worker.Process.Signal(syscall.SIGTERM) }
	if err := worker.Start(); err != nil {
		return err
	}
	if err = t.watch(ctx); err == nil {
		err = worker.Process.Signal(syscall.SIGTERM)
	}
	if ended := worker.Wait(); err == nil {
		err = ended
	}
	if err != nil {
		return fmt.Errorf("rota worker: %w\n%s", err, log.Bytes())
	}
	t.client = worker.ProcessState.UserTime() + worker.ProcessState.SystemTime()
	return nil
}

// watch waits until another process has settled all rows. It looks fifty times a second, and only at the rows with which
// the queues begin and end, by their keys: to look for a row that is left would read the whole table each time, and
// the time of that would count as the peer's.
func (t *task) watch(ctx context.Context) error {
	settled := func(where string) (int64, error) {
		return t.db.Number(ctx, fmt.Sprintf(`SELECT COUNT(*) FROM %s WHERE state = 'SETTLED' AND %s`, t.table, where))
	}
	steps := []struct { // a step follows when as many rows of the one before are settled
		where string
		rows  int64
	}{
		{fmt.Sprintf(`id <= %d`, queues), 1}, {fmt.Sprintf(`id > %d`, t.n-queues), queues}, {`id > 0`, int64(t.n)},
	}
	for {
		n, err := settled(steps[0].where)
		for err == nil && n >= steps[0].rows {
			t.begin()
			if steps = steps[1:]; len(steps) == 0 {
				t.settled(t.n)
				return nil
			}
			n, err = settled(steps[0].where)
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}
