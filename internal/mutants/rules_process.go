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
		"X5", "each failure in an outage counts an attempt",
		"counts", "return !f.doubted ||",
		"return true || !f.doubted ||",
		"TestOutageOfALargeSourceIsGentle|TestOutageOfItemsWithoutRecordsInMemory",
	},
	{
		"X5", "poison is doubted like an outage",
		"counts", "f.last > 0 && f.last < f.round",
		"false && f.last > 0",
		"TestFailureCounts",
	},
	{
		"X5", "the sample does not grow",
		"claim", "min(2*p.width, probesPerSecond)",
		"min(p.width, probesPerSecond)",
		"TestPoisonHidesNoHealthyItem",
	},
	{
		"X5", "a slow service gets more calls",
		"fail", "p.width, p.failed = 1, 0",
		"p.failed += 0",
		"TestSlowProbesDoNotWidenTheSample|TestSampleStaysNarrow",
	},
	{
		"X5", "known poison opens the breaker again",
		"knownLocked", "return b.result.first > 0 &&",
		"return false && b.result.first > 0 &&",
		"TestPoisonHidesNoHealthyItem|TestKnownPoisonOpensNoBreaker",
	},
	{
		"X5", "refused data is an outage",
		"blames", "isPermanent(err) || e.DataError(err)",
		"isPermanent(err)",
		"TestErrorsOfDataAreNoOutage",
	},
	{
		"X2", "retries take the executors from other items",
		"limitRetries", "l.retryCredit / retryShare",
		"len(f.of[retried]) + 0*retryShare",
		"TestPoisonHidesNoHealthyItem",
	},
	{
		"X5", "a sweep passes its probes",
		"passInSweep", "if !b.capabilities.cursored && !failure.passes()",
		"if false && !failure.passes()",
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
		"findStep", "case c.quota == 0 && c.untested >= c.wanted:",
		"case c.quota > 0, c.untested >= c.wanted:",
		"TestOutageIsOverBehindAPage|TestPoisonHidesNoHealthyItem",
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
