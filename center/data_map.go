package center

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dutyrota/rota/internal/roster"
)

// queueMark stands for the id of the queue in the name of a data database.
const queueMark = "{{queue}}"

// DatabaseOf returns the name of the data database that has the items of a queue, by the setting Database. The name is
// empty for the roster's database. It returns an error if the setting says nothing about the queue.
func (s Settings) DatabaseOf(queue string) (string, error) {
	if s.Database == "" {
		return "", nil
	}
	for part := range strings.SplitSeq(s.Database, ",") {
		queues, name, found := strings.Cut(strings.TrimSpace(part), "=")
		if !found {
			queues, name = "", queues
		}
		if !found || coversQueue(strings.TrimSpace(queues), queue) {
			name = strings.ReplaceAll(strings.TrimSpace(name), queueMark, queue)
			return name, roster.CheckDataName(name)
		}
	}
	return "", fmt.Errorf("it names no database for queue %q", queue)
}

// coversQueue reports whether a queue is the named one, or its number is in a range such as 4-7.
func coversQueue(queues, queue string) bool {
	if queues == queue {
		return true
	}
	from, to, isRange := strings.Cut(queues, "-")
	if !isRange {
		return false
	}
	first, err1 := strconv.Atoi(from)
	last, err2 := strconv.Atoi(to)
	n, err3 := strconv.Atoi(queue)
	return errors.Join(err1, err2, err3) == nil && first <= n && n <= last
}

// Databases returns the names of the data databases of the queues, without repetitions. It returns the error of the
// first queue for which DatabaseOf returns one.
func (s Settings) Databases() (names []string, err error) {
	if s.Database == "" {
		return nil, nil
	}
	for _, q := range s.queueIDs() {
		name, err := s.DatabaseOf(q)
		if err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

func (s Settings) queueIDs() []string {
	ids := slices.Clone(s.QueueNames)
	for i := range s.Queues {
		ids = append(ids, strconv.Itoa(i))
	}
	return ids
}

func (s Settings) validateDatabase() error {
	if _, err := s.Databases(); err != nil {
		return fmt.Errorf("database (%.60q) must name the data database of each queue: %w", s.Database, err)
	}
	return nil
}
