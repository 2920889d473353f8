package manager

import (
	"context"
	"sync"
	"time"

	"github.com/dutyrota/rota/internal/roster"
)

// callShare is the server's part of max_in_flight (P10). The row has two numbers of calls of Execute. Granted is how
// many the other servers expect this server to make at most. Target is what Granted is to become. The server starts no
// call beyond the smaller of the two. It lowers Granted with a heartbeat as its calls end. Only a plan raises Granted.
//
// Within a version of the row, the number of calls in flight only falls while it is above the smaller of the two. A
// heartbeat that the server has given up may lower the row late, but only to a number that the server does not exceed
// before a plan writes the row. The plan makes a new version, under which the late heartbeat lowers nothing.
type callShare struct {
	*base
	mu    sync.Mutex // the heartbeater reads the fields too, in its own goroutine
	known bool
	row   roster.InFlightShare // as last read
	most  int                  // no call starts beyond it
	asked bool                 // a heartbeat was asked for, for this version
}

func sharePart(b *base) part {
	s := &callShare{base: b}
	return part{
		follow: func(r heartbeatReply) {
			if s.follow(r.Share.InFlightShare); r.Share.Due {
				b.agenda.add(time.Now(), raiseShares)
			}
		},
		update: func(context.Context) { s.lowerEarly() },
		jobs:   map[duty]func() *job{raiseShares: s.raise},
		report: func(r *roster.ServerReport) { r.Lowering = s.lowering() },
		status: func(st *Status) { st.MaxInFlight = s.limit() },
	}
}

// follow takes the share from a heartbeat's reply. The processor knows of it before the next heartbeat reports it.
func (s *callShare) follow(row roster.InFlightShare) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known && row.Version < s.row.Version {
		return // the reply comes from a node of a cluster that lags behind (F7)
	}
	if row.Version != s.row.Version {
		s.asked = false
	}
	s.known, s.row, s.most = true, row, int(min(row.Granted, row.Target))
	s.proc.SetMaxInFlight(s.most)
}

// lowering returns the number to which the next heartbeat lowers the row. From now on, at most that many calls are in
// flight under this version.
func (s *callShare) lowering() (l roster.InFlightLowering) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if to := max(s.most, s.proc.BatchesInFlight()); s.known && to < int(s.row.Granted) {
		l = roster.InFlightLowering{To: to, Version: s.row.Version}
	}
	return l
}

// lowerEarly sends a heartbeat at once when it can lower the row to the target: another server waits for these calls.
func (s *callShare) lowerEarly() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known && !s.asked && s.most < int(s.row.Granted) && s.proc.BatchesInFlight() <= s.most {
		s.asked = true
		s.heartbeater.soon()
	}
}

// raise returns the job that grants calls to the servers that have fewer than they are to have.
func (s *callShare) raise() *job {
	var busy bool
	return &job{
		name: "raise the shares of max_in_flight",
		call: func(ctx context.Context) (err error) {
			busy, err = s.ownPlanner().RaiseShares(ctx)
			return err
		},
		then: func(_ context.Context, err error) (more bool) {
			if err == nil && !busy {
				s.heartbeater.soon() // to learn of the new share
			}
			return false
		},
	}
}

// limit returns how many calls the server may have in flight, or -1 if it has no limit.
func (s *callShare) limit() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.known || s.most == roster.NoLimit {
		return -1
	}
	return s.most
}
