package engine

// SetMaxNotes replaces the bound of the notes in memory. A test calls it before Run.
func (p *Processor) SetMaxNotes(most int) { p.memory.notes.most = int64(most) }

// SetMaxKeysBehind replaces the bound of the order keys that a pass leaves behind. A test calls it before Grant.
func (p *Processor) SetMaxKeysBehind(most int) { p.memory.keysBehind = most }

// Notes returns how many notes about failed items the processor holds.
func (p *Processor) Notes() int { return int(p.memory.notes.held.Load()) }
