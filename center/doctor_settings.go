package center

import "fmt"

// givenSettings compares the settings that the servers' programs give with the row, which is in force. Each value that differs is
// one finding, with all servers that give it.
func (d *diagnosis) givenSettings(r rosterRows, row Settings) {
	servers := map[Difference][]string{}
	var order []Difference
	for _, s := range r.servers {
		for _, diff := range differ(s.GivenSettings, row) {
			if servers[diff] == nil {
				order = append(order, diff)
			}
			servers[diff] = append(servers[diff], ServerName(s.UUID))
		}
	}
	for _, diff := range order {
		give := fmt.Sprintf("%d servers (%s) give", len(servers[diff]), firstFive(servers[diff]))
		if len(servers[diff]) == 1 {
			give = servers[diff][0] + " gives"
		}
		d.note("settings", "to change the row: rota task apply -f rota.yaml; otherwise change the program",
			"%s %s %s, but the row says %s and is in force", give, diff.Name, oneLine(errText(diff.Given)), oneLine(errText(diff.Row)))
	}
}
