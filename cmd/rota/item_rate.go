package main

import (
	"time"

	"github.com/dutyrota/rota/center"
)

// itemRates computes the servers' items per second from two successive
// readings of their counters. The zero value has no earlier reading.
type itemRates struct {
	at       time.Time        // the database's time of the last reading
	finished map[string]int64 // items per server at that time, by uuid
}

// update returns the items per second of each server since the last reading,
// by uuid. A server without an earlier reading has 0. A server writes its
// counters with each heartbeat, so the rate is as coarse as the heartbeats.
func (r *itemRates) update(servers []center.ServerRecord) map[string]float64 {
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
