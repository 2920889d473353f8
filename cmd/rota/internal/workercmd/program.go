package workercmd

import (
	"fmt"

	"github.com/dutyrota/rota/cmd/rota/internal/program"
	"github.com/dutyrota/rota/cmd/rota/internal/sqldealer"
	"github.com/dutyrota/rota/config"
)

// runner executes rows in a program of another language.
type runner interface {
	program.Executor
	Close() // waits for the processes
}

// addProgram gives a dealer the program of its task, if it has one. It starts nothing.
func (w *worker) addProgram(task config.Task, dealer *sqldealer.Dealer) error {
	if !task.Program.Given() {
		return nil
	}
	p, err := w.newProgram(task)
	if err != nil {
		return fmt.Errorf("tasks.%s.dealer%w", task.Name, err)
	}
	w.programs = append(w.programs, p)
	if dealer != nil { // its statements may be wrong
		dealer.Call(p)
	}
	return nil
}

// newProgram returns the program of a task. Its errors continue the path of the dealer.
func (w *worker) newProgram(task config.Task) (runner, error) {
	if command := task.Program.Command; len(command) > 0 {
		p, err := program.NewCommand(command, w.log.WithField("task_type", task.Name))
		if err != nil {
			return nil, fmt.Errorf(".command: %w", err)
		}
		return p, nil
	}
	service := task.Program.HTTP
	secret, err := service.Secret()
	if err != nil {
		return nil, fmt.Errorf(".http%w", err)
	}
	p, err := program.NewHTTP(program.HTTPOptions{
		URL: service.URL, Secret: []byte(secret), CAFile: service.CAFile, Connections: service.Connections,
	})
	if err != nil {
		return nil, fmt.Errorf(".http.%w", err)
	}
	return p, nil
}

// closePrograms ends the programs, when no batch is in flight any more.
func (w *worker) closePrograms() {
	for _, p := range w.programs {
		p.Close()
	}
}
