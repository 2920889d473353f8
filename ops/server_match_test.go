package ops

import (
	"slices"
	"strings"
	"testing"
)

// A name stands for a server, for all servers of a process, or for all servers of a host.
func TestNameMatchesAServerAProcessOrAHost(t *testing.T) {
	t.Parallel()
	servers := []ServerRecord{
		{UUID: "a:1:0001", HostName: "a"},
		{UUID: "a:1:0002", HostName: "a"},
		{UUID: "a:11:0003", HostName: "a"},
		{UUID: "long-name:2:0004", HostName: "long-name.example.org"},
		{UUID: "aa:1:0005", HostName: "aa"},
	}
	for name, want := range map[string]string{
		"a:1:0002": "a:1:0002", "a:1": "a:1:0001 a:1:0002", "a:11": "a:11:0003", "a": "a:1:0001 a:1:0002 a:11:0003",
		"long-name": "long-name:2:0004", "long-name.example.org": "long-name:2:0004", "": "", "a:1:00": "", "a:": "", "b": "", "a:1:0001:": "",
	} {
		var got []string
		for _, s := range matchServers(servers, name) {
			got = append(got, s.UUID)
		}
		if !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("matchServers(%q): got %q, want %s", name, got, want)
		}
	}
}
