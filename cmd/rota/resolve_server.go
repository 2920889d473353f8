package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/dutyrota/rota/center"
)

var (
	errUnknownServer   = errors.New("unknown server")
	errAmbiguousServer = errors.New("ambiguous name")
)

// resolveServer returns the registered server with the given name: its uuid,
// or a prefix of it that ends before a colon, such as host:pid. It returns
// errUnknownServer if no server matches and errAmbiguousServer if several do.
func resolveServer(ctx context.Context, c *center.Center, name string) (center.ServerRecord, error) {
	servers, err := c.Servers(ctx, center.ServerFilter{})
	if err != nil {
		return center.ServerRecord{}, err
	}
	server, err := matchServer(servers, name)
	if err != nil {
		return center.ServerRecord{}, fmt.Errorf("find server %s in own_sign %s: %w", name, c.OwnSign(), err)
	}
	return server, nil
}

func matchServer(servers []center.ServerRecord, name string) (center.ServerRecord, error) {
	var matches []center.ServerRecord
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
		return center.ServerRecord{}, errUnknownServer
	case 1:
		return matches[0], nil
	}
	return center.ServerRecord{}, fmt.Errorf("%w: it can be %s", errAmbiguousServer, alternatives(describe(matches)))
}

func describe(servers []center.ServerRecord) (texts []string) {
	for _, s := range servers {
		texts = append(texts, s.UUID+" ("+s.TaskType+")")
	}
	return texts
}

// hostNames returns the hosts of the task type's servers, each once. The empty
// task type stands for all.
func hostNames(ctx context.Context, c *center.Center, taskType string) (hosts []string, err error) {
	servers, err := c.Servers(ctx, center.ServerFilter{TaskType: taskType})
	seen := map[string]bool{}
	for _, s := range servers {
		if !seen[s.HostName] {
			seen[s.HostName] = true
			hosts = append(hosts, s.HostName)
		}
	}
	return hosts, err
}
