package processor

// SetMaxRecords replaces the bound of the records in memory. A test calls it before Run.
func (p *Processor) SetMaxRecords(most int) { p.memory.records.most = int64(most) }

// SetMaxDead replaces the bound of the dead keys in memory. A test calls it before Run.
func (p *Processor) SetMaxDead(most int) { p.memory.dead.most = int64(most) }

// SetMaxKeysBehind replaces the bound of the order keys that a pass leaves behind. A test calls it before Grant.
func (p *Processor) SetMaxKeysBehind(most int) { p.memory.keysBehind = most }

// Records returns how many records of failed items the processor holds.
func (p *Processor) Records() int { return int(p.memory.records.held.Load()) }

// DeadKeys returns how many keys of dead items the processor holds.
func (p *Processor) DeadKeys() int { return int(p.memory.dead.held.Load()) }
