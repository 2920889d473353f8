package demo

import (
	"os"
	"os/exec"
	"testing"

	"github.com/dutyrota/rota/ops"
)

func TestSceneIsDone(t *testing.T) {
	// servers returns servers with so many queues each.
	servers := func(queues ...int64) (list []ops.ServerRecord) {
		for _, n := range queues {
			list = append(list, ops.ServerRecord{Queues: n})
		}
		return list
	}
	moving := servers(2, 2, 2, 2)
	moving[1].Requested = 1
	for name, c := range map[string]struct {
		scene   scene
		servers []ops.ServerRecord
		settled int
		want    bool
	}{
		"three share":           {scene{workers: 3, percent: 25}, servers(3, 2, 3), 5_000, true},
		"too few orders":        {scene{workers: 3, percent: 25}, servers(3, 2, 3), 4_999, false},
		"one has too few":       {scene{workers: 3}, servers(4, 1, 3), 0, false},
		"a queue without owner": {scene{workers: 3}, servers(3, 2, 2), 0, false},
		"not all have joined":   {scene{workers: 3}, servers(4, 4), 0, false},
		"four share":            {scene{workers: 4}, servers(2, 2, 2, 2), 0, true},
		"a queue is to move":    {scene{workers: 4}, moving, 0, false},
		"one is not evicted":    {scene{workers: 3}, servers(2, 2, 2, 2), 0, false},
		"all have left":         {scene{percent: 100}, nil, 20_000, true},
		"one has not left":      {scene{percent: 100}, servers(0), 20_000, false},
	} {
		if got := c.scene.isDone(c.servers, c.settled); got != c.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

func TestName(t *testing.T) {
	s := &story{}
	for i, pid := range []int{471, 4711} {
		s.workers = append(s.workers, &worker{
			Cmd:  &exec.Cmd{Process: &os.Process{Pid: pid}},
			name: []string{"worker 1", "worker 2"}[i],
		})
	}
	for uuid, want := range map[string]string{
		"h:4711:a": "worker 2", "fe80::1:471:d": "worker 1", "h:47:a": "h:47:a", "-": "-",
	} {
		if got := s.name(uuid); got != want {
			t.Errorf("%s is %s, want %s", uuid, got, want)
		}
	}
}
