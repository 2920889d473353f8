package processor

// SetMaxRecords replaces the bound of the records in memory. A test calls it before Run.
func (p *Processor) SetMaxRecords(most int) { p.memory.most = int64(most) }

// Records returns how many records of failed items the processor holds.
func (p *Processor) Records() int { return int(p.memory.held.Load()) }
