package roster

// ItemsReply is what a heartbeat's reply says about failed items.
type ItemsReply struct {
	Version int64 // changes when an operator changes failed items
}

// columns implements replyOption.
func (ItemsReply) columns(Heartbeat) string { return `r.item_version` }
