package processor

import "time"

// span is a batch in hand.
type span struct {
	items    items
	from, to int
}

// sift takes out of a page what must not be executed now, and marks what must be executed alone. It is called by the
// executor that selected the page. Keys are not asked for if there is nothing to be told apart.
func (p *Processor) sift(c *call, g *page) (err error) {
	if !p.powers.tracks() || !c.suspicious() {
		return nil
	}
	if err := c.lookUp(); err != nil {
		return err
	}
	if c.keys, err = g.items.keys(c.keys[:0], 0, g.items.size()); err != nil {
		return err
	}
	s := sieve{call: c, page: g, inOrder: p.powers.cursored, now: time.Now()}
	c.lane.books.Lock()
	s.run()
	c.lane.books.Unlock()
	s.apply()
	return nil
}

// suspicious reports whether an item of the select may be one that is not ordinary.
func (c *call) suspicious() bool {
	if len(c.inHand) > 0 || c.alone > 0 {
		return true
	}
	for _, h := range c.queues {
		if h.book.all.Load() > 0 {
			return true
		}
	}
	return false
}

// lookUp enters the keys of what was in hand when the select began.
func (c *call) lookUp() (err error) {
	clear(c.seen)
	for _, s := range c.inHand {
		if c.keys, err = s.items.keys(c.keys[:0], s.from, s.to); err != nil {
			return err
		}
		if c.seen == nil {
			c.seen = map[string]struct{}{}
		}
		for _, key := range c.keys {
			c.seen[key] = struct{}{}
		}
	}
	return nil
}

// sieve parts the items of a page into ordinary ones, those with a mark, and the rest, which is left out.
type sieve struct {
	*call
	page    *page
	inOrder bool
	now     time.Time

	plain, special []int32
	marks          []mark // of all items; nil while all are ordinary
}

func (s *sieve) run() {
	for i, key := range s.keys {
		if _, inHand := s.seen[key]; inHand {
			continue
		}
		h := s.parts[0].held
		if s.page.of != nil {
			h = s.parts[s.page.of[i]].held
		}
		how, wait := s.judge(h, key, i)
		switch {
		case wait && s.inOrder:
			return // the rest waits too
		case wait:
		case how == ordinary || s.inOrder:
			s.plain = s.keep(s.plain, i, how)
		default:
			s.special = s.keep(s.special, i, how)
		}
	}
}

func (s *sieve) keep(places []int32, i int, how mark) []int32 {
	if how != ordinary {
		if s.marks == nil {
			s.marks = make([]mark, len(s.keys))
		}
		s.marks[i] = how
	}
	if places == nil {
		places = make([]int32, 0, len(s.keys))
	}
	return append(places, int32(i))
}

// judge says how an item is executed, or that it is not now.
func (s *sieve) judge(h *held, key string, place int) (how mark, wait bool) {
	e, ok := h.book.entries[key]
	switch {
	case ok && e.dead && s.inOrder:
		return passed, false
	case ok && e.dead:
		return ordinary, true
	case ok && e.until.After(s.now):
		if s.earliest.IsZero() || e.until.Before(s.earliest) {
			s.earliest = e.until
		}
		return ordinary, true
	case ok && e.owed:
		return owed, false
	case ok:
		return mark(max(1, e.group)), false
	case place < s.alone:
		return mark(s.group), false
	}
	return ordinary, false
}

// apply takes the others out of the page. Those with a mark come last, unless there is an order.
func (s *sieve) apply() {
	if s.marks == nil && len(s.plain) == len(s.keys) {
		return
	}
	s.page.marks = s.marks
	s.page.take(append(s.plain, s.special...))
}
