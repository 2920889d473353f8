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
		"roomForParked", "parked += g.failures.waiting()",
		"parked += 0 * g.failures.waiting()",
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
		"X5", "a sweep passes its probes",
		"passInSweep", "if b.probing && !b.capabilities.cursored",
		"if false && b.probing && !b.capabilities.cursored",
		"TestSweepOutlastsALongOutage",
	},
	{
		"X5", "a sweep waits for an hour only",
		"sweepsGiveUpLocked", "if waited >= s.settings.horizon() {",
		"if waited >= time.Hour {",
		"TestSweepOutlastsALongOutage",
	},
	{
		"X5", "poison at the end of a run waits like an outage",
		"sweepsGiveUpLocked", "return poison && waited",
		"return false && poison && waited",
		"TestSweepOfPoisonEnds",
	},
	{
		"X5", "a queue gives up although another one has items that tell",
		"sweepsGiveUpLocked", "case !w.onlyFailed:\n\t\t\treturn false\n",
		"case !w.onlyFailed:\n",
		"TestSweepWaitsWhileAnotherQueueProbes|TestSweepOutlastsALongOutage",
	},
	{
		"X5", "a probe that has failed hides the items behind a page",
		"findStep", "case c.probing && c.untested > 0, !c.probing && p.unstarted() >= c.wanted:",
		"case c.probing && p.unstarted() > 0, !c.probing && p.unstarted() >= c.wanted:",
		"TestOutageIsOverBehindAPage",
	},
	{
		"X6", "a page is executed without the records that memory does not hold",
		"filter", "if f.stored, err = f.findRecords(); err != nil {",
		"if f.stored, err = nil, nil; err != nil {",
		"TestRecordsBeyondTheBound",
	},
	{
		"X6", "an item whose record memory does not hold begins with its first attempt",
		"countAttempt", "u.record = stored[u.key]",
		"u.record = record{}",
		"TestRecordsBeyondTheBound|TestOutageOfItemsWithoutRecordsInMemory",
	},
	{
		"X6", "the records of a removed queue are forgotten",
		"queuesChanged", "l.versions.partition++",
		"l.versions.partition += 0",
		"TestDeadItemsStayDeadAfterARemoval",
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
		"TestFailingDealerRaisesOneAlert",
	},
}
