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

// DisplayState returns the state of the backfill, or PAUSED for an open one that an operator has paused.
func (b Backfill) DisplayState() string {
	if b.Paused && b.State == BackfillRunning {
		return TriggerPaused
	}
	return b.State
}
