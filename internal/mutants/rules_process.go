package main

// processMutants break processing: rules X.
var processMutants = []mutant{
	{
		"X1", "an item in flight is selected again",
		"claimLocked", "\tc.noteInFlightLocked(s, l)\n",
		"",
		"TestNotSleepDropsItemsInFlightDuringTheSelect",
	},
	{
		"X2", "the limit does not grow by the items that back off",
		"roomForParked", "parked += g.failures.parked.Load()",
		"parked += 0 * g.failures.parked.Load()",
		"TestParkedItemsRaiseTheLimit",
	},
	{
		"X2", "a full page of dead items is selected again",
		"findStep", "c.step = moves\n",
		"c.step = stays\n",
		"TestItemsBehindDeadItems",
	},
	{
		"X2", "the next pass over dead items begins at once",
		"againAt", "passShare * p.barren",
		"0 * p.barren",
		"TestPassesOverDeadItemsAreRare",
	},
	{
		"R9", "a sweep is complete although its pass has worked",
		"proven", "c.step == ends && !p.worked",
		"c.step == ends",
		"TestEverySweepEnds",
	},
	{
		"X3", "the cursor passes a failed batch",
		"finishInOrderLocked", "if b.outcome == done && b.position.saved {",
		"if b.outcome == done && b.position.saved || b.outcome == failed {",
		"TestCursoredBatchesRunOneByOne|TestCursorWaitsForAFailingItemUntilItIsDead",
	},
	{
		"X4", "each server takes the whole rate",
		"update", "share += s.RatePerSecond / float64(max(1, g.total))",
		"share += s.RatePerSecond",
		"TestRateIsSharedByQueues",
	},
	{
		"X5", "each probe counts an attempt",
		"isFree", "return r.attempts > 0",
		"return false && r.attempts > 0",
		"TestOutageKillsNoItem",
	},
	{
		"", "a single poison item is a failing dealer",
		"failing", " && s.several",
		"",
		"TestPoisonIsNoFailingDealer",
	},
	{
		"", "a worker is ready although its calls all fail",
		"ready", "e != nil {",
		"e != nil && false {",
		"TestFailingDealerIsTold",
	},
}
