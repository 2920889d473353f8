package processor

import (
	"time"

	"golang.org/x/time/rate"
)

// All methods of this file are called under the lock.

// pace takes the items of a batch from the rate (X4). If that must wait it returns false and says until when; the
// batch stays where it is, so that a drain has nothing to wait for.
func (p *Processor) pace(now time.Time, n int, how mark) bool {
	p.pacedUntil = time.Time{}
	if p.settings.RatePerSecond == 0 || how < ordinary {
		return true
	}
	if p.limiter == nil || !p.paced {
		p.setPace(now)
	}
	r := p.limiter.ReserveN(now, n)
	d := r.DelayFrom(now)
	if d == 0 {
		return true
	}
	r.CancelAt(now)
	p.pacedUntil = now.Add(min(d, time.Hour))
	return false
}

// repace has the share computed again before the next batch.
func (p *Processor) repace() { p.paced, p.pacedUntil = false, time.Time{} }

// setPace computes the share of the rate that the queues of this server have. It is called before the first batch
// after the queues or the settings have changed.
func (p *Processor) setPace(now time.Time) {
	p.paced = true
	share := 0.0
	for _, h := range p.held {
		if !h.draining {
			share += p.settings.RatePerSecond / float64(max(1, h.total))
		}
	}
	burst := max(p.settings.ExecuteNumber, int(share))
	if p.limiter == nil {
		p.limiter = rate.NewLimiter(rate.Limit(share), burst)
		return
	}
	p.limiter.SetLimitAt(now, rate.Limit(share))
	p.limiter.SetBurstAt(now, burst)
}
