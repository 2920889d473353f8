package manager

import (
	"testing"

	"github.com/dutyrota/rota/internal/roster"
)

// X9: a heartbeat that was sent before the server had read its requests may be older than these, so it tells the owners
// nothing: they would look too early, and not look again.
func TestHeartbeatBeforeTheRequestsTellsNoOwner(t *testing.T) {
	view := &ownView{View: roster.View{
		Queues: []roster.ViewQueue{{ID: "0", Owner: "you", Requester: "me", PlanVersion: 7}},
	}}
	b := &base{uuid: "me", view: view}
	view.base = b
	s := &session{base: b}
	reply := heartbeatReply{read: 6}
	s.tellOwners(reply) // it has no roster to tell anybody with
	if !view.hasNewRequests() {
		t.Error("the requests count as shown")
	}
}
