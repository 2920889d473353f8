package manager

import "context"

// Receive passes a hint to a Manager as a listener does.
var Receive = (*Manager).receive

// HearingChanged tells a Manager whether hints arrive, as a listener does.
func HearingChanged(m *Manager, err error) { m.hear(context.Background(), err) }
