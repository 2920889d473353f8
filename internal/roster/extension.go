package roster

import "context"

// extension is what an option adds to the transactions of a roster: a plan, an audit and a release. Each option returns
// its extension from its own file, with the functions that it needs, and the others are nil. The kernel (the lock row,
// the servers, the plan and the moves of queues) goes through the list.
type extension struct {
	// due returns a condition on the lock row, whose name or alias is given, under which a plan is due.
	due func(lockRow string) string

	// release returns a condition on a row of schedule_queue, whose alias is given, under which its owner may hand the
	// queue over.
	release func(queue string) string

	// before changes what a plan is made from. review changes the plan before it is written.
	before, review planStep
	// after writes what follows from the moves of queues, before the lock row notes that the plan is made.
	after planStep
	// last is as after, for what makes another plan due, or what heartbeats wait for until the commit (S1).
	last planStep

	// repair is a step of an audit before it compares the rows with a plan. differs reports whether a plan, which has
	// written nothing, would write more than the moves of queues: then the audit rebalances.
	repair  func(context.Context, Planner) error
	differs func(*planning) bool
}

// planStep is a step of a plan under the lock row.
type planStep func(context.Context, *planning) error

// extensions returns the extensions in the order in which each step goes through them.
func extensions() []extension {
	return []extension{
		validityExtension(), timesExtension(), epochExtension(), totalsExtension(), waitingExtension(), loadExtension(),
		crashExtension(), reservationExtension(), changesExtension(), shareExtension(),
	}
}
