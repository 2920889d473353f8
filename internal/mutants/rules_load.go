package main

// loadMutants break the plan by load: rule P16.
var loadMutants = []mutant{
	{
		"P16", "each server is new after the clock was set back",
		"isNew", " AND register_time <= {now}",
		"",
		"TestConformance",
	},
	{
		"P16", "a step of the clock gives the budget back",
		"budgetUsed", "max(0, min(until.Sub(now), budgetTime))",
		"max(0, until.Sub(now)%budgetTime)",
		"TestMovesLeft",
	},
	{
		"P16", "queues move as soon as a server has 15 percent too much",
		"even", "bound := b.limits.Loads.Start;",
		"bound := b.limits.Loads.Stop;",
		"TestPlanByLoadBeginsLaterThanItEnds",
	},
	{
		"P16", "a server that has too many queues gives none if another server cannot take the smallest",
		"sortByStay", "compareTrue(stays[i], stays[j]), ",
		"",
		"TestPlanByLoadGivesWhatAnotherServerCanTake",
	},
	{
		"P16", "a queue moves for any gain",
		"helped", "*(1-leastGain)",
		"",
		"TestPlanByLoadNeedsAGain",
	},
	{
		"P16", "the smallest queue goes, though it is not enough",
		"choose", "slices.Reverse(best[:enough])",
		"slices.Reverse(best[:max(enough, len(best))])",
		"TestPlanByLoadOfZipf",
	},
	{
		"P16", "queues move though the loads of many are not known yet",
		"newLoadBalancing", "measured > 0 &&",
		"measured < 0 &&",
		"TestConformance",
	},
	{
		"P16", "queues move between servers that have hardly anything to do",
		"excess", "max(leastBusy, b.level*float64(b.weights[r.from]))",
		"b.level*float64(b.weights[r.from])",
		"TestPlanByLoadIgnoresIdleServers",
	},
	{
		"P16", "a plan moves more than its budget",
		"even", "b.budget--",
		"b.budget += 0",
		"TestConformance",
	},
	{
		"P16", "a server that joins gets nothing while the others have not too much",
		"fill", "if weight == 0 ||",
		"if weight >= 0 ||",
		"TestPlanByLoadFeedsAServerThatJoins",
	},
	{
		"P16", "a server that joins does not get the queues whose rows were locked",
		"PlanServer", "New: s.New, ",
		"",
		"TestConformance",
	},
	{
		"P16", "the queues of a server that joins count in the budget",
		"rule", "case b.joins[to]:",
		"case false:",
		"TestConformance",
	},
	{
		"P16", "a queue goes to a server that lacks a label of its pin",
		"first", " && !g.bars(s)",
		"",
		"TestPlanByLoadObeysPins|TestPlanByLoadProperties",
	},
	{
		"P16", "a zone gets more than its part",
		"open", "b.zoneHas[zone].queues < b.zoneMost[zone]",
		"row >= 0",
		"TestPlanByLoadObeysZones",
	},
	{
		"P16", "a queue without an owner takes the room of others",
		"obey", "b.at[i] == none && b.rows[i].owner != none",
		"b.at[i] == none",
		"TestPlanByLoadLeavesRoomForQueuesThatMustMove",
	},
	{
		"P16", "a request of a dead owner's queue outlives the grant",
		"setOwners", "w.rule = Unowned",
		"w.rule, w.requester = Unowned, r.at(w.Requester)",
		"TestPlanByLoadGrantsWithoutOldRequests",
	},
	{
		"P16", "the moves of an hour are not counted",
		"countLoadMoves", "moves++",
		"moves += 0",
		"TestConformance",
	},
	{
		"P16", "the moves of the last plan are forgotten",
		"budgetUsed", "min(until.Sub(now), budgetTime)",
		"min(0*until.Sub(now), budgetTime)",
		"TestConformance",
	},
}
