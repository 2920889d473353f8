package runs

// DisplayState returns the state of the run, or PAUSED for an open run that an operator has paused.
func (r Run) DisplayState() string {
	if r.Paused && !r.Ended() {
		return TriggerPaused
	}
	return r.State
}

// stateText returns the state of the run, and that it is paused.
func (r Run) stateText() string {
	if r.Paused {
		return r.State + " and paused"
	}
	return r.State
}

// FinishedQueues returns how many queues of the run need no more sweeps: they are done, failed or cancelled.
func (r RunRecord) FinishedQueues() int64 {
	return r.QueuesDone + r.QueuesFailed + r.QueuesCancelled
}
