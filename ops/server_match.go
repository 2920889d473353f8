package ops

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Matching returns the registered servers with the given name, in the order of List. The name is a uuid, a process
// (host:pid), which has a server for each task type, or a host. Matching returns ErrUnknownServer if there are none.
func (s *Servers) Matching(ctx context.Context, name string) ([]ServerRecord, error) {
	servers, err := s.List(ctx, ServerFilter{})
	if err != nil {
		return nil, err
	}
	matches := matchServers(servers, name)
	if len(matches) == 0 {
		return nil, fmt.Errorf("find server %s in own_sign %s: %w", name, s.c.ownSign, ErrUnknownServer)
	}
	return matches, nil
}

// matchServers returns the server with the uuid. If there is none, it returns the servers whose uuid starts with the
// name and a colon, or whose host has the name.
func matchServers(servers []ServerRecord, name string) []ServerRecord {
	if i := slices.IndexFunc(servers, func(s ServerRecord) bool { return s.UUID == name }); i >= 0 {
		return servers[i : i+1]
	}
	var matches []ServerRecord
	for _, s := range servers {
		if name != "" && (strings.HasPrefix(s.UUID, name+":") || s.HostName == name) {
			matches = append(matches, s)
		}
	}
	return matches
}
