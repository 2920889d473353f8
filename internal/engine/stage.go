package engine

import "time"

// stage is one option of how pages are worked. Each of its functions is optional. A processor has the stages that the
// capabilities of its dealer ask for, in one order, and the core calls them without knowing them. Nor do they know each
// other: what one of them finds that matters to others, and to the core, stands in a look.
//
// Functions whose last argument is the scheduler hold its lock.
type stage struct {
	reset func(l *lane) // an operator may have changed anything about the items

	// Of a select, in this order. prepare sets what the dealer is asked for. read, judge and sift go through what it has
	// returned. judge returns the class of an item, given the class that the stages before it say. page prepares the rest.
	claim   func(c *selectCall, now time.Time, s *scheduler)
	prepare func(c *selectCall)
	read    func(c *selectCall, returned items, p *page) error
	judge   func(c *selectCall, i int, class class, m mark, r record) class
	sift    func(c *selectCall, d *division)
	page    func(c *selectCall, returned items, p *page) error
	finish  func(c *selectCall, s *scheduler)
	begins  func(c *selectCall, s *scheduler) // the page gives batches
	next    func(c *selectCall, s *scheduler) // it does not: what delays the next select

	// Of a batch, in this order. begin is called before Execute, which an error keeps from being called. settle is called
	// after it, and after the failed items are recorded, unless nothing was to be recorded. end is always called.
	take   func(b *batch, s *scheduler)
	begin  func(b *batch) error
	settle func(b *batch)
	end    func(b *batch, s *scheduler)
}

// stages returns the stages of a dealer.
func (a capabilities) stages() []*stage {
	list := []*stage{&samplingStage, &pagingStage}
	if a.Ordered {
		list = append(list, &orderStage)
	}
	return append(list, &sweepStage, &isolationStage, &watchStage)
}

// stageStates are what the stages know of a lane. The files of the stages have the types, and say what guards them.
type stageStates struct {
	sampling sampling
	paging   paging
	ordering ordering
	watch    watch
}

// look is what a select looks at, and what that means for the next one.
type look struct {
	wanted   int       // how many items to execute the select asks for; Limit also counts items that are not executed
	room     int       // how many items that have failed it may return beside them
	since    time.Time // when the first of the selects began that have looked at the source up to here
	judges   bool      // the items are judged even if none of them has failed
	kept     []int32   // the indexes of the items that the page executes, if they were judged
	untested int       // items of the page that have not failed alone, if the failed items are known
	parked   int       // items of the page that have failed, or that follow such an item of their order key
	head     int       // how many items at the head of the page are not executed now, because they have failed
	retryAt  time.Time // when the first item that backs off may be retried; zero if none backs off

	goesOn   bool // the next select goes on behind the page
	ended    bool // the select has reached the end of the source
	partial  bool // it leaves out items that may be executed
	unproven bool // to find nothing proves nothing: it has not seen the whole source since something was found
	more     bool // the next select follows at once
	waiting  bool // items were left out that wait for one of the page
}
