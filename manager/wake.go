package manager

import "slices"

// Wake says that there may be new items of a task type, so that this process does not wait for its next look at queues
// that were empty (X9). A key is the name of a queue. Where queues are numbers, it is the whole number by which the
// select divides the items: with Mine("id", 1), the id, and with MineHash the Hash of the key. No key means all queues.
// Wake ignores keys of queues that this process does not own, and task types that it does not serve.
//
// The caller calls it after the commit: what is not committed yet is not found. Wake is a hint. One that is lost or
// wrong costs the time up to the next select, or a select.
func (m *Manager) Wake(taskType string, keys ...string) {
	for _, s := range m.servers {
		session := s.session.Load()
		if s.taskType != taskType || session == nil {
			continue
		}
		s.proc.Hint(keys...) // the processor is made before the first session
		if slices.ContainsFunc(session.parts, func(p part) bool { return p.told != nil }) {
			offer(s.told, struct{}{})
		}
	}
}
