package workercmd

import (
	"sync"
	"testing"
	"testing/synctest"

	"github.com/dutyrota/rota/cmd/rota/internal/program"
)

// slow is a program that ends when all programs have been told to end.
type slow struct {
	program.Program
	told *sync.WaitGroup
}

// Close implements runner.
func (s slow) Close() {
	s.told.Done()
	s.told.Wait()
}

// A worker with many programs takes no longer to stop than with one: a supervisor would kill it.
func TestProgramsEndTogether(t *testing.T) {
	synctest.Test(t, func(*testing.T) {
		var told sync.WaitGroup
		told.Add(2)
		w := worker{programs: []runner{slow{told: &told}, slow{told: &told}}}
		w.closePrograms()
	})
}
