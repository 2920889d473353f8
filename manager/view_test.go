package manager

import (
	"testing"

	"github.com/dutyrota/rota/internal/roster"
)

// S2: another number, or one that is unknown, calls for a fresh read.
func TestMatches(t *testing.T) {
	v := &ownView{base: &base{uuid: "me"}, View: roster.View{Version: 4, PartitionVersion: 2, QueueTotal: 3}}
	same := roster.HeartbeatReply{QueueVersion: 4, PartitionVersion: 2, QueueTotal: 3}
	if !v.matches(same) {
		t.Fatal("the same reply does not match")
	}
	for name, spoil := range map[string]func(*roster.HeartbeatReply){
		"a change":         func(p *roster.HeartbeatReply) { p.QueueVersion++ },
		"an older history": func(p *roster.HeartbeatReply) { p.QueueVersion-- },
		"total":            func(p *roster.HeartbeatReply) { p.QueueTotal++ },
		"partition":        func(p *roster.HeartbeatReply) { p.PartitionVersion++ },
		"the number is unknown": func(p *roster.HeartbeatReply) {
			p.QueueVersion, v.Version = -1, -1
		},
	} {
		p := same
		spoil(&p)
		if v.matches(p) {
			t.Errorf("%s differs and is not noticed", name)
		}
		v.Version = 4
	}
}
