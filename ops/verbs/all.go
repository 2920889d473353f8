package verbs

// All returns all verbs, grouped by what they change.
func All() []*Verb { return all }

var all = []*Verb{
	pauseTask, resumeTask, wakeTask, setTask, applyTasks, deleteTask,
	addQueue, removeQueue, splitQueue, mergeQueues, setQueue, pinQueue, unpinQueue,
	pauseServers, resumeServers, drainServers, weighServers,
	retryItems, dropItems,
	submitRun, cancelRun, rerunRun, pauseRun, resumeRun, dependRun, ackRun,
	startBackfill, pauseBackfill, resumeBackfill, cancelBackfill,
	applyTrigger, fireTrigger, pauseTrigger, resumeTrigger, deleteTrigger,
	ackLoss,
}

// Find returns the verb with a name, nil if there is none.
func Find(name string) *Verb {
	for _, v := range all {
		if v.Name == name {
			return v
		}
	}
	return nil
}
