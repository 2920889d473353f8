package workercmd

import (
	"fmt"
	"sync"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/cmd/rota/internal/program"
	"github.com/dutyrota/rota/cmd/rota/internal/sqldealer"
	"github.com/dutyrota/rota/config"
	"github.com/dutyrota/rota/manager"
)

// runner is a program of another language.
type runner interface {
	program.Program
	Close() // waits for the processes
}

// addDealer adds the dealer of a task, whose program p is nil if it has none.
func (w *worker) addDealer(task config.Task, kinds sqldealer.Kinds, p runner) error {
	if task.Program.Selects() {
		w.serve = append(w.serve, func(c *center.Center) manager.Task {
			return manager.Serve(task.Name, program.NewDealer(p, task.Program.Answers, c.DB()), task.Settings).
				Stating(task.Given...)
		})
		return nil
	}
	dealer, err := sqldealer.New(task, kinds)
	if err != nil {
		return err
	}
	if p != nil {
		var columns []string
		if h, ok := p.(*program.HTTP); ok {
			columns = h.Columns()
		}
		dealer.Call(p, columns...)
	}
	w.dealers = append(w.dealers, placed{task, dealer})
	w.serve = append(w.serve, func(c *center.Center) manager.Task {
		return manager.Serve(task.Name, dealer.Use(c.DB(), c.AllData()...), task.Settings).Stating(task.Given...)
	})
	return nil
}

// addProgram returns the program of a task, or nil if it has none. It starts nothing.
func (w *worker) addProgram(task config.Task) (runner, error) {
	if !task.Program.Given() {
		return nil, nil
	}
	p, err := w.newProgram(task)
	if err != nil {
		return nil, fmt.Errorf("tasks.%s.dealer%w", task.Name, err)
	}
	w.programs = append(w.programs, p)
	return p, nil
}

// newProgram returns the program of a task. Its errors continue the path of the dealer.
func (w *worker) newProgram(task config.Task) (runner, error) {
	if command := task.Program.Command; len(command) > 0 {
		p, err := program.NewCommand(command, task.Program.Env, w.log.WithField("task_type", task.Name))
		if err != nil {
			return nil, fmt.Errorf(".%w", err)
		}
		return p, nil
	}
	service := task.Program.HTTP
	secret, err := service.Secret()
	if err != nil {
		return nil, fmt.Errorf(".http%w", err)
	}
	w.secrets.Add(secret)
	o := program.HTTPOptions{
		URL: service.URL, Secret: []byte(secret), CAFile: service.CAFile, Connections: service.Connections,
		Redact: w.secrets.Text,
	}
	if service.Each {
		o.Each = &program.EachOptions{
			Method: service.Method, Headers: service.Headers, Body: service.Body, Permanent: service.Permanent,
		}
	}
	p, err := program.NewHTTP(o)
	if err != nil {
		return nil, fmt.Errorf(".http.%w", err)
	}
	return p, nil
}

// closePrograms ends the programs of all tasks at once, when no batch is in flight any more: each may take its time.
func (w *worker) closePrograms() {
	var all sync.WaitGroup
	for _, p := range w.programs {
		all.Go(p.Close)
	}
	all.Wait()
}
