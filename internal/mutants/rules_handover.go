package main

// handoverMutants break the hand-over and the number of queues: rules H and rules N.
var handoverMutants = []mutant{
	{
		"H1", "no drain wait",
		"keep", `case row.Requester != "" && h.Drained:`,
		`case row.Requester != "" && h.Draining:`,
		"TestDecide",
	},
	{
		"H2", "a release does not look at the pin and require",
		"releasable", " && meets(host, labels, require, pin)",
		"",
		"TestConformance",
	},
	{
		"H2", "release without the name of the requester",
		"releasable", " && req == q.Requester {",
		" {",
		"TestConformance",
	},
	{
		"H3", "a queue is worked after its release was sent",
		"begin", "retired := f.retired[row.ID] == row.Epoch",
		"retired := false",
		"TestDecide",
	},
	{
		"H4", "leave without a hand-over",
		"Leave", "leaving: s.uuid, forced: forced",
		"forced: forced",
		"TestConformance",
	},
	{
		"H5", "a forced drain waits for the owner",
		"forceDrain", "leaving: uuid, forced: queues",
		"forced: queues",
		"TestConformance",
	},
	{
		"H5", "a forced drain does not wait for a fenced transaction",
		"ForceDrainServer", "err == nil && len(held) > 0; pause",
		"err == nil && len(held) > 99; pause",
		"TestConformance",
	},
	{
		"H6", "a queue that loses its owner keeps its epoch",
		"newChangeRow", "if c.ChangesOwner() {",
		"if c.Owner != \"\" && c.ChangesOwner() {",
		"TestConformance",
	},
	{
		"H6", "a lock row that is rebuilt forgets the epochs of deleted queues",
		"RebuildLockRow", "max(l.EpochHigh, recorded)",
		"min(l.EpochHigh, recorded)",
		"TestConformance",
	},
	{
		"N1", "the number of queues changes without the barrier",
		"FinishRepartition", "err != nil || busy > 0 || ",
		"err != nil || ",
		"TestConformance",
	},
	{
		"N2", "a queue is removed without the drain",
		"keep", "case row.Removing && h.Drained:",
		"case row.Removing && h.Draining:",
		"TestDecide",
	},
}
