package console

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dutyrota/rota/ops"
)

const (
	// sampleEvery is the least time between two samples.
	sampleEvery = 5 * time.Second
	// sampleSpan is how far the sparklines go back.
	sampleSpan = 10 * time.Minute
	// sampleGap is the time between two samples over which no line is drawn: nobody has looked meanwhile.
	sampleGap = 90 * time.Second
)

// samples are the rates of the servers and the task types. They are taken whenever the servers are read, so that there
// are none of times when nobody looked.
type samples struct {
	mu      sync.Mutex
	rates   ops.ItemRates
	last    time.Time           // by this host's clock: the database's may be set back
	servers map[string]float64  // items per second by uuid
	tasks   map[string][]sample // by task type, the oldest first
}

// sample is the rate of a task type at a moment.
type sample struct {
	at   time.Time
	rate float64
}

func newSamples() *samples { return &samples{tasks: map[string][]sample{}} }

// add takes a sample, unless the last one is new.
func (s *samples) add(servers []ops.ServerRecord) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, first := time.Now(), s.last.IsZero()
	if now.Sub(s.last) < sampleEvery {
		return
	}
	s.last, s.servers = now, s.rates.Update(servers)
	if first {
		return // a rate needs two readings
	}
	sums := map[string]float64{}
	for task, list := range s.tasks {
		if list[len(list)-1].rate != 0 {
			sums[task] = 0 // its workers may have ended
		}
	}
	for _, server := range servers {
		sums[server.TaskType] += s.servers[server.UUID]
	}
	for task, rate := range sums {
		s.tasks[task] = append(s.tasks[task], sample{s.last, rate})
	}
	for task, list := range s.tasks {
		old, _ := slices.BinarySearchFunc(list, s.last.Add(-sampleSpan),
			func(x sample, t time.Time) int { return x.at.Compare(t) })
		if list = list[old:]; len(list) == 0 {
			delete(s.tasks, task)
			continue
		}
		s.tasks[task] = list
	}
}

// ofServers returns the rates of the servers by uuid.
func (s *samples) ofServers() map[string]float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.servers)
}

// spark is a small plot of the rate of a task type over the last ten minutes.
type spark struct {
	Rate  float64  // the last one
	Lines []string // points of polylines in a box of 100 by 20; a gap in the samples divides two lines
}

// ofTask returns the plot of a task type.
func (s *samples) ofTask(taskType string) spark {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.tasks[taskType]
	if len(list) == 0 {
		return spark{}
	}
	highest := slices.MaxFunc(list, func(a, b sample) int { return cmp.Compare(a.rate, b.rate) }).rate
	spark := spark{Rate: list[len(list)-1].rate}
	var line strings.Builder
	for i, x := range list {
		if i > 0 && x.at.Sub(list[i-1].at) > sampleGap {
			spark.Lines = append(spark.Lines, line.String())
			line.Reset()
		}
		fmt.Fprintf(&line, "%.1f,%.1f ", 100*(1-float64(s.last.Sub(x.at))/float64(sampleSpan)),
			19-18*x.rate/max(highest, 1e-9))
	}
	spark.Lines = append(spark.Lines, line.String())
	return spark
}
