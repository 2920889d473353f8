package processor

import (
	"fmt"
	"time"
)

// selectLimit is how many items a select asks for.
type selectLimit struct{ *selectCall }

// limit returns the number of items to ask for, from the size of the page. Items that back off, are dead or have failed
// in the sweep still match the user's condition. The limit grows by their number, so that they do not starve other
// items (X2). It also grows by the number of items in flight.
func (c selectLimit) limit() int {
	c.wanted = c.selection.Limit
	if c.capabilities.cursored { // the cursor has passed them
		return c.wanted
	}
	if c.quota > 0 && c.capabilities.keyed {
		c.wanted = c.sampled()
	}
	limit := c.wanted + c.roomForParked()
	for _, s := range c.inFlight {
		limit += s.size()
	}
	return limit
}

// sampled returns the number of items from which an outage takes its sample. Where the select cannot go on behind a
// page, the sample reaches further with each round, as far as a select reaches behind failed items.
func (c selectLimit) sampled() int {
	if c.capabilities.paged {
		return c.settings.FetchNumber
	}
	return min(c.quota, 1+parkedRoom) * c.settings.FetchNumber
}

// alertPause is the pause between two alerts about a lane while the reason lasts. The receiver decides how often it
// notifies operators.
const alertPause = time.Minute

// roomForParked returns the number of items that the select may return although they have failed. Beyond the bound, the
// select of a Paged dealer goes on behind its page. Another dealer may miss items, and an alert reports that.
func (c selectLimit) roomForParked() int {
	parked, most := int64(c.lane.unheld), parkedRoom*c.settings.FetchNumber
	for _, g := range c.grants {
		parked += g.failures.waiting()
	}
	missing := parked > int64(most) && (!c.capabilities.paged || c.lane.pass.ignored)
	switch {
	case !missing:
		c.lane.alertedAt = time.Time{}
	case c.now.Sub(c.lane.alertedAt) >= alertPause:
		c.lane.alertedAt = c.now
		c.alertParked(parked, c.wanted+most)
	}
	if c.lane.crowded { // there may be many more
		parked += int64(c.lane.unheld)
	}
	return c.lane.pass.room(int(min(parked, int64(most))))
}

func (c selectLimit) alertParked(parked int64, limit int) {
	text := "at least %d items of queue %s have failed, back off or are dead: selects return at most %d items and may miss others"
	if c.capabilities.paged {
		text += ", because Select ignores Selection.After"
	}
	c.env.Alert(Alert{Kind: AlertParked, Queue: c.selection.Queue.ID, Text: fmt.Sprintf(text, parked, c.queueIDs(), limit)})
}
