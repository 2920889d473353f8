package center

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// What Find may return.
var (
	ErrUnknownServer   = errors.New("unknown server")
	ErrAmbiguousServer = errors.New("ambiguous name")
	ErrNoRunOrTask     = errors.New("neither a run nor a task type has this name")
	ErrNoRunYet        = errors.New("the task type has had no run")
)

// Find returns the registered server with the given name: its uuid, or a prefix of it that ends before a colon, such as
// host:pid. ErrUnknownServer if no server matches, ErrAmbiguousServer if several do.
func (s *Servers) Find(ctx context.Context, name string) (ServerRecord, error) {
	servers, err := s.List(ctx, ServerFilter{})
	if err != nil {
		return ServerRecord{}, err
	}
	server, err := matchServer(servers, name)
	if err != nil {
		return ServerRecord{}, fmt.Errorf("find server %s in own_sign %s: %w", name, s.c.ownSign, err)
	}
	return server, nil
}

func matchServer(servers []ServerRecord, name string) (ServerRecord, error) {
	var matches []ServerRecord
	for _, s := range servers {
		if s.UUID == name {
			return s, nil
		}
		if strings.HasPrefix(s.UUID, name+":") {
			matches = append(matches, s)
		}
	}
	switch len(matches) {
	case 0:
		return ServerRecord{}, ErrUnknownServer
	case 1:
		return matches[0], nil
	}
	var names []string
	for _, s := range matches {
		names = append(names, s.UUID+" ("+s.TaskType+")")
	}
	last := len(names) - 1
	return ServerRecord{}, fmt.Errorf("%w: it can be %s or %s", ErrAmbiguousServer, strings.Join(names[:last], ", "), names[last])
}

// Find returns the run with the given id, or the newest run of the task type with the given name. ErrNoRunOrTask if there
// is neither, ErrNoRunYet if the task type has had no run. A task type of mode CONTINUOUS is refused.
func (r *Runs) Find(ctx context.Context, name string) (RunRecord, error) {
	run, err := r.Get(ctx, name)
	if !errors.Is(err, ErrUnknownRun) {
		return run, err
	}
	run, err = r.e.LatestRun(ctx, name)
	switch {
	case errors.Is(err, ErrUnknownTask):
		err = fmt.Errorf("find run %s in own_sign %s: %w", name, r.ownSign, ErrNoRunOrTask)
	case errors.Is(err, ErrUnknownRun):
		err = fmt.Errorf("find the newest run of %s$%s: %w", name, r.ownSign, ErrNoRunYet)
	}
	return run, err
}

// Get returns the run with the given id. ErrUnknownRun if there is none.
func (r *Runs) Get(ctx context.Context, runID string) (RunRecord, error) {
	list, err := r.List(ctx, RunFilter{RunID: runID}, 1)
	if err != nil {
		return RunRecord{}, err
	}
	if len(list) == 0 {
		return RunRecord{}, fmt.Errorf("read run %s: %w", runID, ErrUnknownRun)
	}
	return list[0], nil
}
