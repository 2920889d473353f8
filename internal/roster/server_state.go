package roster

// mayOwn reports whether a server in the state is eligible: whether it may be assigned queues (P1). A paused or draining
// server only keeps the queues that no eligible server takes (P7).
func MayOwn(state string) bool { return state == StateServing || state == StateStandby }

// ownerStates is mayOwn as a condition on a row of schedule_server.
const OwnerStates = `state IN ('` + StateServing + `', '` + StateStandby + `')`
