package demo

import (
	"fmt"
	"strconv"
	"strings"
)

// effectChecks ask about the orders and about how the workers ended.
func effectChecks() []check {
	return []check{
		{
			claim: "each order took effect exactly once",
			queries: []string{
				`SELECT state, effects, COUNT(*) AS orders
  FROM orders GROUP BY state, effects ORDER BY state, effects`,
				`SELECT COUNT(*) AS orders, SUM(effects) AS effects,
       COUNT(DISTINCT id) AS ids, MIN(id) AS first, MAX(id) AS last
  FROM orders`,
			},
			judge: judgeEffects,
		},
		{
			claim: "only servers of the roster settled orders",
			queries: []string{`SELECT o.settled_by, h.pid, h.reason AS ended, COUNT(*) AS orders
  FROM orders o LEFT JOIN schedule_server_history h ON h.uuid = o.settled_by
 WHERE o.settled_by IS NOT NULL
 GROUP BY o.settled_by, h.pid, h.reason ORDER BY o.settled_by`},
			judge: judgeShares,
		},
		{
			claim: "all workers but the killed left in order",
			queries: []string{
				`SELECT reason, COUNT(*) AS servers
  FROM schedule_server_history GROUP BY reason ORDER BY reason`,
				`SELECT (SELECT COUNT(*) FROM schedule_server) AS servers,
       (SELECT COUNT(*) FROM schedule_queue
         WHERE cur_server IS NOT NULL) AS owned_queues`,
			},
			judge: judgeEnd,
		},
		{
			claim: "each change of owner has its own epoch",
			queries: []string{`SELECT queue_id, COUNT(*) AS changes, COUNT(DISTINCT epoch) AS epochs,
       MIN(epoch) AS first, MAX(epoch) AS last,
       SUM(CASE WHEN EXISTS (SELECT 1 FROM schedule_event p
             WHERE p.queue_id = e.queue_id AND p.kind <> 'REQUESTED'
               AND p.event_id < e.event_id AND p.epoch >= e.epoch)
           THEN 1 ELSE 0 END) AS falls
  FROM schedule_event e WHERE queue_id IS NOT NULL AND kind <> 'REQUESTED'
 GROUP BY queue_id ORDER BY queue_id`},
			judge: judgeEpochs,
		},
	}
}

func judgeEffects(answers []answer) verdict {
	n := strconv.Itoa(orderCount)
	once := answers[0].is([]string{"SETTLED", "1", n})
	whole := answers[1].is([]string{n, n, n, "1", n})
	if once && whole {
		return verdict{proved, fmt.Sprintf("%s orders, %s effects", count(orderCount), count(orderCount))}
	}
	var parts []string
	for row, cells := range answers[0].rows {
		parts = append(parts, fmt.Sprintf("%s × %s with effects = %s", count(answers[0].number(row, 2)), cells[0], cells[1]))
	}
	return verdict{refuted, strings.Join(parts, ", ") + "; want " + count(orderCount) + " × SETTLED with effects = 1"}
}

func judgeShares(answers []answer) verdict {
	for _, row := range answers[0].rows {
		if row[2] == "" {
			return verdict{refuted, fmt.Sprintf("%s × settled by %q, which the roster does not know", row[3], row[0])}
		}
	}
	return verdict{proved, fmt.Sprintf("%s by %d workers", count(answers[0].sum(3)), len(answers[0].rows))}
}

func judgeEnd(answers []answer) verdict {
	if !answers[0].is([]string{"EXPIRED", "1"}, []string{"LEFT", strconv.Itoa(firstWorkers)}) {
		return verdict{refuted, fmt.Sprintf("the servers ended as %v: want 1 EXPIRED, which was killed, and %d LEFT. "+
			"Did the machine stop a worker for longer than judge_dead_interval (%s)?", answers[0].rows, firstWorkers, judgeDeadInterval)}
	}
	if !answers[1].is([]string{"0", "0"}) {
		return verdict{refuted, fmt.Sprintf("still there: servers %s, queues with an owner %s", answers[1].rows[0][0], answers[1].rows[0][1])}
	}
	return verdict{proved, fmt.Sprintf("1 expired, %d left", firstWorkers)}
}

func judgeEpochs(answers []answer) verdict {
	a := answers[0]
	for row, cells := range a.rows {
		if a.number(row, 1) != a.number(row, 2) || a.number(row, 5) != 0 {
			return verdict{refuted, fmt.Sprintf("queue %s changed its owner %s times under %s epochs, which fell %s times", cells[0], cells[1], cells[2], cells[5])}
		}
	}
	if len(a.rows) != queueCount {
		return verdict{refuted, fmt.Sprintf("%d queues had an owner: want %d", len(a.rows), queueCount)}
	}
	return verdict{proved, fmt.Sprintf("%d changes of %d queues", a.sum(1), queueCount)}
}
