package main

// planMutants break the plan: rules P.
var planMutants = []mutant{
	{
		"P1", "queue 10 comes before queue 2",
		"CompareIDs", "cmp.Or(compareTokens(a, b), cmp.Compare(a, b))",
		"cmp.Compare(a, b)",
		"TestPlanSortsNaturally",
	},
	{
		"P1", "ids of one length compare as bytes, so that the order has cycles",
		"CompareIDs", "\treturn cmp.Or(",
		"\tif len(a) == len(b) {\n\t\treturn cmp.Compare(a, b)\n\t}\n\treturn cmp.Or(",
		"TestOrderOfShortIDsIsTotal",
	},
	{
		"P2", "the larger quota goes to the server that owns least",
		"divide", "return cmp.Or(stays(b)-stays(a), ",
		"return cmp.Or(stays(a)-stays(b), ",
		"TestPlanTableOfP8|TestPlanCases|TestPlanProperties",
	},
	{
		"P2", "all weights above 0 count alike",
		"weigh", "min(max(0, s.Weight), MaxWeight)",
		"min(max(0, s.Weight), 1)",
		"TestPlanProperties|TestPlanAgainstAllAssignments",
	},
	{
		"P2", "a server of weight 0 gets nothing although the others are full",
		"quotas", "reserve[s] = 1",
		"reserve[s] = 0",
		"TestPlanOfWeights",
	},
	{
		"P3", "a server keeps any queues",
		"keep", "(i%n == s) == ownPosition",
		"(i%n >= 0) == ownPosition",
		"TestPlanTableOfP8|TestPlanCases|TestPlanProperties",
	},
	{
		"P4", "the first server gets each queue that has no owner",
		"assign", "open.from(i % n)",
		"open.from(0)",
		"TestPlanTableOfP8|TestPlanCases|TestPlanProperties",
	},
	{
		"P5", "a queue is taken from a live server",
		"assignOwnerless", "if p.rows[i].Owner == \"\" && server != \"\" {",
		"if p.rows[i].Owner != server && server != \"\" {",
		"TestPlanTableOfP8|TestPlanCases|TestPlanProperties",
	},
	{
		"P6", "no second pass",
		"Plan", "\tp.request() // assigns",
		"\t// assigns",
		"TestPlanTableOfP8|TestPlanCases|TestPlanProperties",
	},
	{
		"P7", "a server gets a queue more than its limit",
		"bounds", "most = p.maxPerServer\n",
		"most = p.maxPerServer + 1\n",
		"TestPlanTableOfP8|TestPlanCases|TestPlanProperties",
	},
	{
		"P8", "more queues move than must",
		"keep", "range []bool{true, false} {",
		"range []bool{true} {",
		"TestPlanProperties",
	},
	{
		"P9", "a server gets the queue of its own hung call",
		"bar", "p.barred[id][server] = true",
		"p.barred[id][server] = false",
		"TestPlanCases|TestPlanProperties",
	},
	{
		"P11", "a server plans by rules that it does not know",
		"mayPlan", "if l.plannerVersion < inForce {",
		"if l.plannerVersion < 0*inForce {",
		"TestConformance",
	},
	{
		"P11", "new rules come into force before all servers know them",
		"plannerInForce", "slices.MinFunc(servers, byVersion)",
		"slices.MaxFunc(servers, byVersion)",
		"TestConformance",
	},
	{
		"P12", "more servers own queues than may",
		"working", "within(len(chosen), limits.Servers)",
		"true",
		"TestPlanOfFewServers|TestStandbyOfAHost",
	},
	{
		"P12", "more servers of a host own queues than may",
		"working", "within(ofHost[s.Host], limits.ServersPerHost)",
		"true",
		"TestPlanOfFewServers|TestStandbyOfAHost",
	},
	{
		"P10", "calls are granted whatever the others have",
		"Raise", "free -= int64(s.Granted)",
		"free -= 0 * int64(s.Granted)",
		"TestShareOutCases|TestShareOutProperties",
	},
	{
		"P10", "a share is lowered before its calls have ended",
		"lowering", "max(s.most, s.proc.BatchesInFlight())",
		"s.most",
		"TestCallSharesStayWithinTheLimit",
	},
	{
		"P10", "a heartbeat that arrives late lowers a share",
		"lowering", "max_in_flight_version = \")",
		"max_in_flight_version >= 0 * \")",
		"TestConformance/.*/P10_shares",
	},
	{
		"P10", "a server follows an old share",
		"follow", "s.known && row.Version < s.row.Version",
		"false",
		"TestCallSharesStayWithinTheLimit",
	},
	{
		"P10", "a server starts calls beyond its share",
		"nextBatchLocked", "|| s.inFlight.full()",
		"",
		"TestShareBoundsTheBatchesInFlight|TestMaxInFlightStarvesNoQueue",
	},
	{
		"P10", "more servers than calls get queues",
		"working", "within(len(chosen), limits.InFlight)",
		"true",
		"TestPlanOfFewCalls|TestStandbyTakesOver",
	},
}
