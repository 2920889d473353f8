package manager

import (
	"testing"

	"github.com/dutyrota/rota/internal/roster"
)

// S2: whatever differs from what was read calls for a fresh read.
func TestMatches(t *testing.T) {
	v := &ownView{base: &base{uuid: "me"}, View: roster.View{PlanVersion: 3, QueueTotal: 3, Removing: []string{"0"}, Queues: []roster.ViewQueue{
		{ID: "0", Owner: "me", Epoch: 4, PlanVersion: 2},
		{ID: "1", Owner: "me", Requester: "you", Epoch: 6, PlanVersion: 1},
		{ID: "2", Owner: "you", Requester: "me", Epoch: 8, PlanVersion: 3},
	}}}
	same := roster.HeartbeatReply{PlanVersion: 9, QueueTotal: 3, Removing: []string{"0"}, Owned: 2, EpochSum: 10, OwnedPlanVersion: 2, Requested: 1, Incoming: 1}
	if !v.matches(same) {
		t.Fatal("the same reply does not match")
	}
	for name, spoil := range map[string]func(*roster.HeartbeatReply){
		"plan":      func(p *roster.HeartbeatReply) { p.OwnedPlanVersion = 1 }, // older, after a promoted standby lost some
		"total":     func(p *roster.HeartbeatReply) { p.QueueTotal++ },
		"removing":  func(p *roster.HeartbeatReply) { p.Removing = []string{"1"} },
		"owned":     func(p *roster.HeartbeatReply) { p.Owned++ },
		"epochs":    func(p *roster.HeartbeatReply) { p.EpochSum-- },
		"requested": func(p *roster.HeartbeatReply) { p.Requested = 0 },
		"awaited":   func(p *roster.HeartbeatReply) { p.Incoming = 0 },
	} {
		p := same
		spoil(&p)
		if v.matches(p) {
			t.Errorf("%s differs and is not noticed", name)
		}
	}
}
