package doctor

import "strings"

// WorkerPrivileges lists the rights that Diagnose tries, as GRANT has them.
func WorkerPrivileges() (list []string) {
	for _, n := range needs {
		list = append(list, strings.Join(strings.Fields(n.verbs), ", ")+" ON "+n.table)
	}
	return list
}
