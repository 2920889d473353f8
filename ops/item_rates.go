package ops

import "time"

// ItemRates computes the servers' items per second from two successive readings of their counters. The zero value has no
// earlier reading. It must not be used concurrently.
type ItemRates struct {
	at       time.Time        // the database's time of the last reading
	finished map[string]int64 // items per server at that time, by uuid
}

// Update returns the items per second of each server since the last reading, by uuid. A server without an earlier reading
// has no entry. A server writes its counters with each heartbeat, so the rate is as coarse as the heartbeats.
func (r *ItemRates) Update(servers []ServerRecord) map[string]float64 {
	rates, finished := map[string]float64{}, map[string]int64{}
	var now time.Time
	for _, s := range servers {
		now, finished[s.UUID] = s.Now, s.SuccessCount+s.FailureCount
		if before, known := r.finished[s.UUID]; known && s.Now.After(r.at) {
			rates[s.UUID] = float64(finished[s.UUID]-before) / s.Now.Sub(r.at).Seconds()
		}
	}
	r.at, r.finished = now, finished
	return rates
}
