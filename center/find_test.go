package center

import (
	"errors"
	"strings"
	"testing"
)

func TestMatchServer(t *testing.T) {
	t.Parallel()
	servers := []ServerRecord{{UUID: "a:1:0001", TaskType: "x"}, {UUID: "a:1:0002", TaskType: "y"}, {UUID: "a:11:0003"}, {UUID: "b:2:0004"}}
	for name, want := range map[string]string{"b:2:0004": "b:2:0004", "b:2": "b:2:0004", "b": "b:2:0004", "a:11": "a:11:0003", "a:1:0002": "a:1:0002"} {
		if got, err := matchServer(servers, name); err != nil || got.UUID != want {
			t.Errorf("matchServer(%q): got %s, %v, want %s", name, got.UUID, err, want)
		}
	}
	for _, name := range []string{"", "c", "a:1:00", "b:2:0004:"} {
		if _, err := matchServer(servers, name); !errors.Is(err, ErrUnknownServer) {
			t.Errorf("matchServer(%q): got %v, want %v", name, err, ErrUnknownServer)
		}
	}
	const both = "a:1:0001 (x) or a:1:0002 (y)"
	if _, err := matchServer(servers, "a:1"); !errors.Is(err, ErrAmbiguousServer) || !strings.HasSuffix(err.Error(), both) {
		t.Errorf("matchServer(a:1): got %v, want %v with %s", err, ErrAmbiguousServer, both)
	}
}
