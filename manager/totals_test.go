package manager_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/dutyrota/rota/internal/racetest"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/ops"
)

// startMany starts a worker of many task types with so many queues each.
func (cl *cluster) startMany(taskTypes, queues int) *worker {
	cl.Helper()
	var tasks []manager.Task
	for i := range taskTypes {
		tasks = append(tasks, manager.Serve(fmt.Sprintf("task-%02d", i), idle{}, manager.Settings{Queues: queues, SleepTimeNoData: 10 * time.Minute, HeartbeatInterval: 5 * time.Second, JudgeDeadInterval: 30 * time.Second}))
	}
	m, err := manager.New(cl.c, manager.Config{Grace: time.Second}, tasks...)
	if err != nil {
		cl.Fatal(err)
	}
	return cl.run(m)
}

// totals returns how many queues the processes have of all task types, in ascending order, and of how many task types one
// server has two queues more than another.
func (cl *cluster) totals() (totals []int64, uneven int) {
	cl.Helper()
	servers, err := ops.New(cl.c).Servers().List(cl.Context(), ops.ServerFilter{})
	if err != nil {
		cl.Fatal(err)
	}
	byProcess, byTask := map[string]int64{}, map[string][]int64{}
	for _, s := range servers {
		byProcess[s.Process] += s.Queues
		byTask[s.TaskType] = append(byTask[s.TaskType], s.Queues)
	}
	for _, n := range byProcess {
		totals = append(totals, n)
	}
	for _, list := range byTask {
		if slices.Max(list) > slices.Min(list)+1 {
			uneven++
		}
	}
	slices.Sort(totals)
	return totals, uneven
}

// P15: processes of many task types that start one after the other have equal numbers of queues in three audit intervals.
// Then nothing moves. After one of them has left, that is so again.
func TestTotalsOfProcesses(t *testing.T) {
	racetest.Skip(t)
	sizes := []struct{ queues, processes int }{{4, 3}, {1, 3}, {7, 3}, {4, 10}}
	if testing.Short() {
		sizes = sizes[:1]
	}
	for _, size := range sizes {
		t.Run(fmt.Sprintf("%d queues on %d processes", size.queues, size.processes), func(t *testing.T) {
			inBubble(t, func(cl *cluster) {
				var workers []*worker
				for range size.processes {
					workers = append(workers, cl.startMany(20, size.queues))
					time.Sleep(10 * time.Second)
				}
				check := func(when string) {
					time.Sleep(90 * time.Second)
					totals, uneven := cl.totals()
					if totals[len(totals)-1] > totals[0]+1 || uneven > 0 {
						t.Errorf("%s: the processes have %v queues; %d task types are uneven", when, totals, uneven)
					}
					before := cl.epochs()
					time.Sleep(2 * time.Minute)
					if after := cl.epochs(); after != before {
						t.Errorf("%s: %d queues moved when nothing changed", when, after-before)
					}
				}
				check("all have joined")
				workers[1].stop()
				<-workers[1].done
				check("one has left")
			})
		})
	}
}
