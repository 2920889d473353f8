package sim

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// result is what a play of a history shows.
type result struct {
	broken     []string
	trace      []string
	lasted     time.Duration // in the time of the world
	statements int
}

// play plays a history.
func play(t *testing.T, h *history) (r result) {
	t.Helper()
	defer notStill(h)()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, h, templates.roster, templates.data)
		defer func() {
			r.lasted, r.statements = time.Since(w.began), w.statements()
			w.close()
			r.broken, r.trace = w.broken, w.trace
		}()
		o := newOracle(w)
		if err := w.playSteps(o); err != nil {
			w.breaks("the play itself: %v", err)
			return
		}
		for _, phase := range o.phases() {
			if err := phase(); err != nil {
				w.breaks("the play itself: %v", err)
			}
			if len(w.broken) > 0 {
				break
			}
		}
		o.leave()
	})
	return r
}

// phases are what follows the steps: always that everything comes to rest, and some of what the oracle does then. All of
// it would take most of the time of a history.
func (o *oracle) phases() []func() error {
	rng, list := rand.New(rand.NewPCG(o.w.h.seed, 5)), []func() error{o.rest}
	for _, some := range []struct {
		percent int
		play    []func() error
	}{
		{35, []func() error{o.quiet}},
		{35, []func() error{o.slots}},
		{50, []func() error{o.drill, o.rest}},
		{80, []func() error{o.exercise, o.rest}},
		{40, []func() error{o.places, o.rest}},
		{25, []func() error{o.fallBack, o.rest}},
	} {
		if rng.IntN(100) < some.percent {
			list = append(list, some.play...)
		}
	}
	return append(list, o.verdict)
}

// templates are the files with which each world begins.
var templates struct{ roster, data string }

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "rota-sim-")
	if err == nil {
		templates.roster, templates.data = filepath.Join(dir, "roster.db"), filepath.Join(dir, "data.db")
		err = errors.Join(makeTemplate(templates.roster, true), makeTemplate(templates.data, false))
	}
	debug.SetGCPercent(800) // a world is small, and makes garbage for seconds
	code := 1
	if err == nil {
		code = m.Run()
	}
	if err = errors.Join(err, os.RemoveAll(dir)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// playSteps starts the processes and takes the steps. Each second the oracle looks at the roster.
func (w *world) playSteps(o *oracle) error {
	steps := slices.Clone(w.h.steps)
	for len(steps) > 0 && steps[0].at == 0 { // what is there before the first process
		if err := w.take(steps[0]); err != nil {
			return err
		}
		steps = steps[1:]
	}
	for i := range w.h.processes {
		w.start(string(rune('a' + i)))
	}
	for i := range w.h.others {
		w.start(string(rune('m' + i)))
	}
	for len(steps) > 0 {
		next := w.began.Add(steps[0].at)
		if wait := min(time.Second, time.Until(next)); wait > 0 {
			time.Sleep(wait)
			if err := o.sample(); err != nil {
				return fmt.Errorf("look at the roster: %w", err)
			}
			continue
		}
		if err := o.sampleRuns(); err != nil { // before a verb can change a new run
			return err
		}
		if err := w.take(steps[0]); err != nil {
			return err
		}
		if steps[0].changesRuns() {
			if err := o.seeRuns(); err != nil {
				return err
			}
		}
		steps = steps[1:]
	}
	return nil
}

// TestScenarios plays the histories of testdata: one that meets the common faults, and each that has broken a rule.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d scenarios: %v", len(files), err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			h, err := parse(string(text))
			if err != nil {
				t.Fatal(err)
			}
			r := play(t, h)
			for _, line := range r.trace {
				t.Log(line)
			}
			for _, rule := range r.broken {
				t.Error(rule)
			}
			t.Logf("%s, %d statements", r.lasted, r.statements)
		})
	}
}

// TestHistories plays random histories, for as long as ROTA_SIM says, which is a duration, and at least one; or as many
// as it says, which is a number then; without it, for ten seconds. Each has the seed after
// that of the one before; ROTA_SIM_SEED is the first one. It ends at the first
// history that breaks a rule, makes that shorter unless ROTA_SIM_SHRINK is 0, and writes it into the directory
// ROTA_SIM_DIR.
func TestHistories(t *testing.T) {
	most, err := strconv.Atoi(os.Getenv("ROTA_SIM"))
	limit := time.Minute // for a shorter history
	if err != nil {
		most = math.MaxInt
		if limit, err = time.ParseDuration(cmp.Or(os.Getenv("ROTA_SIM"), "10s")); err != nil {
			t.Fatal(err)
		}
	}
	seed, err := strconv.ParseUint(cmp.Or(os.Getenv("ROTA_SIM_SEED"), strconv.FormatInt(time.Now().Unix(), 10)), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	played, lasted, statements, met := 0, time.Duration(0), 0, pairs{}
	for began := time.Now(); played == 0 || played < most && (most < math.MaxInt || time.Since(began) < limit); seed++ {
		h := draw(seed)
		r := play(t, h)
		met.add(h)
		played, lasted, statements = played+1, lasted+r.lasted, statements+r.statements
		if len(r.broken) > 0 {
			t.Logf("seed %d breaks %s", seed, r.broken[0]) // a shorter history may break it in another way
			if os.Getenv("ROTA_SIM_SHRINK") != "0" {
				h, r = shrink(t, h, r, time.Now().Add(limit/2))
			}
			t.Errorf("seed %d: %s\n%s\n%s", seed, strings.Join(r.broken, "\n"), h, r.write(t, h, seed))
			break
		}
	}
	t.Logf("%d histories, %s of their time, %d statements", played, lasted.Round(time.Second), statements)
	if played >= 30 {
		t.Log(met.table())
	}
}

// write writes the text of a history, and what happened in it, and returns where.
func (r result) write(t *testing.T, h *history, seed uint64) string {
	t.Helper()
	dir := os.Getenv("ROTA_SIM_DIR")
	if dir == "" {
		return "ROTA_SIM_DIR=DIR keeps what happened"
	}
	file := filepath.Join(dir, fmt.Sprintf("%d.txt", seed))
	what := "# " + strings.ReplaceAll(strings.Join(append(r.broken, r.trace...), "\n"), "\n", "\n# ")
	if err := os.WriteFile(file, []byte(h.String()+"\n"+what+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
