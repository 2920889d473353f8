package console

import (
	"fmt"
	"strconv"

	"github.com/dutyrota/rota/ops"
)

// maxCells is the greatest number of queues that have a cell each in the strip. More queues are a field for each host.
const maxCells = 256

// field is the queues of a host as small squares: a path for each state, so that thousands of them are a few elements.
type field struct {
	Host          string
	Queues, Lost  int
	Height        int // of the view box; its width is fieldWidth
	Held, Moving  string
	Overdue, Rest string
}

const (
	fieldColumns = 40
	fieldSide    = 7 // of a square with its gap
	fieldWidth   = fieldColumns * fieldSide
)

// strip fills the picture of who owns what.
func (p *taskPage) strip(named owners, queues []ops.QueueRecord) {
	if len(queues) <= maxCells && len(named.List) <= 4*maxColours {
		for _, q := range queues {
			p.Cells = append(p.Cells, named.cellOf(q))
		}
		return
	}
	byHost, hosts := map[string][]ops.QueueRecord{}, []string{}
	for _, q := range queues {
		host := ""
		if q.CurHost != nil {
			host = *q.CurHost
		}
		if _, ok := byHost[host]; !ok {
			hosts = append(hosts, host)
		}
		byHost[host] = append(byHost[host], q)
	}
	for _, host := range hosts {
		p.Fields = append(p.Fields, fieldOf(host, byHost[host]))
	}
}

// StripClass returns the class of the strip by its size.
func (p taskPage) StripClass() string {
	if len(p.Cells) <= 16 {
		return "s8"
	}
	return "s64"
}

// ViewBox returns the view box of the field.
func (f field) ViewBox() string { return fmt.Sprintf("0 0 %d %d", fieldWidth, f.Height) }

func fieldOf(host string, queues []ops.QueueRecord) field {
	f := field{Host: host, Queues: len(queues)}
	var held, moving, lost []byte
	for i, q := range queues {
		x, y := i%fieldColumns*fieldSide, i/fieldColumns*fieldSide
		path := &held
		switch {
		case q.Status == "MOVING":
			path = &moving
		case q.Lost():
			path = &lost
			f.Lost++
		}
		*path = append(strconv.AppendInt(append(strconv.AppendInt(append(*path, 'M'), int64(x), 10), ' '), int64(y), 10),
			"h6v6h-6z"...)
	}
	f.Height = (len(queues) + fieldColumns - 1) / fieldColumns * fieldSide
	f.Held, f.Moving, f.Overdue = string(held), string(moving), string(lost)
	return f
}
