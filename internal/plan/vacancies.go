package plan

// vacancies finds the next server with room. After the last server it continues with the first. It skips full servers
// by union-find: a scan would make a plan quadratic in the number of servers, and there are thousands.
type vacancies struct {
	room []int
	next []int // next[s] is s, or a later server once s is full
	open int   // the number of servers with room
}

func newVacancies(room []int) *vacancies {
	v := &vacancies{room: room, next: make([]int, len(room))}
	for s, n := range room {
		v.next[s] = s
		if n > 0 {
			v.open++
		} else {
			v.next[s] = (s + 1) % len(room)
		}
	}
	return v
}

// from returns the first server with room at or after s, or -1.
func (v *vacancies) from(s int) int {
	if v.open == 0 {
		return -1
	}
	for v.next[s] != s {
		v.next[s] = v.next[v.next[s]]
		s = v.next[s]
	}
	return s
}

// take uses up one place of the server.
func (v *vacancies) take(s int) {
	v.room[s]--
	if v.room[s] == 0 {
		v.open--
		v.next[s] = (s + 1) % len(v.room)
	}
}
