package center

import "fmt"

// given compares the settings that the servers' programs give with the row, which is in force. Each value that differs is
// one finding, with all servers that give it.
func (e *diagnosis) given(r rosterReading, row Settings) {
	servers := map[Difference][]string{}
	var order []Difference
	for _, s := range r.servers {
		for _, d := range differ(s.GivenSettings, row) {
			if servers[d] == nil {
				order = append(order, d)
			}
			servers[d] = append(servers[d], ServerName(s.UUID))
		}
	}
	for _, d := range order {
		give := fmt.Sprintf("%d servers (%s) give", len(servers[d]), some(servers[d]))
		if len(servers[d]) == 1 {
			give = servers[d][0] + " gives"
		}
		e.note("settings", "to change the row: rota task apply -f rota.yaml; otherwise change the program",
			"%s %s %s, but the row says %s and is in force", give, d.Name, oneLine(errText(d.Given)), oneLine(errText(d.Row)))
	}
}
