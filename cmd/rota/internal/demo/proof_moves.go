package demo

import (
	"fmt"
	"slices"
	"time"
)

// moveChecks ask about the join and the crash. Only these may have moved queues by then.
func moveChecks() []check {
	return []check{
		{
			claim: "the join moved no more queues than it must",
			queries: []string{
				`SELECT to_server AS held_before_the_join_by, COUNT(*) AS queues
  FROM schedule_event
 WHERE event_id IN (SELECT MAX(event_id) FROM schedule_event
         WHERE kind IN ('GRANTED', 'RELEASED', 'TAKEN_OVER', 'FORCED')
           AND event_id < (SELECT MAX(event_id)
                             FROM schedule_event WHERE kind = 'JOINED')
         GROUP BY queue_id)
 GROUP BY to_server ORDER BY to_server`,
				`SELECT kind, COUNT(*) AS moved_by_the_join
  FROM schedule_event
 WHERE kind IN ('GRANTED', 'RELEASED', 'TAKEN_OVER', 'FORCED', 'UNASSIGNED')
   AND event_id > (SELECT MAX(event_id)
                     FROM schedule_event WHERE kind = 'JOINED')
   AND event_id < (SELECT MIN(event_id)
                     FROM schedule_event WHERE kind = 'EXPIRED')
 GROUP BY kind ORDER BY kind`,
			},
			judge: judgeJoin,
		},
		{
			claim: "the crash moved only the dead one's queues",
			queries: []string{
				`SELECT to_server AS held_before_the_crash_by, COUNT(*) AS queues
  FROM schedule_event
 WHERE event_id IN (SELECT MAX(event_id) FROM schedule_event
         WHERE kind IN ('GRANTED', 'RELEASED', 'TAKEN_OVER', 'FORCED')
           AND event_id < (SELECT MIN(event_id)
                             FROM schedule_event WHERE kind = 'EXPIRED')
         GROUP BY queue_id)
   AND to_server IN (SELECT from_server
                       FROM schedule_event WHERE kind = 'EXPIRED')
 GROUP BY to_server ORDER BY to_server`,
				`SELECT kind, COUNT(*) AS moved_by_the_crash
  FROM schedule_event
 WHERE kind IN ('GRANTED', 'RELEASED', 'TAKEN_OVER', 'FORCED', 'UNASSIGNED')
   AND event_id > (SELECT MIN(event_id)
                     FROM schedule_event WHERE kind = 'EXPIRED')
 GROUP BY kind ORDER BY kind`,
			},
			judge: judgeCrash,
		},
		{
			claim: "the take-over kept its promise",
			queries: []string{`SELECT h.heartbeat_time AS last_heartbeat, e.event_time AS taken_over,
       e.queue_id
  FROM schedule_event e
  JOIN schedule_server_history h ON h.uuid = e.from_server
 WHERE e.kind = 'TAKEN_OVER' ORDER BY e.event_id`},
			judge: judgeTakeOver,
		},
	}
}

func judgeJoin(answers []answer) verdict {
	var held []int
	for row := range answers[0].rows {
		held = append(held, answers[0].number(row, 1))
	}
	return judgeMoves(answers[1], "RELEASED", leastMoves(held))
}

func judgeCrash(answers []answer) verdict {
	return judgeMoves(answers[1], "TAKEN_OVER", answers[0].sum(1))
}

// judgeMoves wants that many moves of that kind and no others.
func judgeMoves(moved answer, kind string, least int) verdict {
	total := moved.sum(1)
	switch {
	case total != least:
		return verdict{refuted, fmt.Sprintf("%s moved: the minimum is %d", plural(total, "queue"), least)}
	case least > 0 && moved.rows[0][0] != kind || len(moved.rows) > 1:
		return verdict{refuted, fmt.Sprintf("%s moved as %v: want only %s", plural(total, "queue"), moved.rows, kind)}
	}
	return verdict{proved, fmt.Sprintf("%s moved, minimum %d", plural(total, "queue"), least)}
}

// leastMoves is how many queues must move when one more server joins those that hold so many each: what is above
// the quotas, of which the larger go to who holds most.
func leastMoves(held []int) int {
	held = append(slices.Clone(held), 0)
	slices.SortFunc(held, func(a, b int) int { return b - a })
	total := 0
	for _, n := range held {
		total += n
	}
	moves := 0
	for i, n := range held {
		quota := total / len(held)
		if i < total%len(held) {
			quota++
		}
		moves += max(0, n-quota)
	}
	return moves
}

// tolerance is how many times longer than promised a take-over may last on a slow machine.
const tolerance = 3

func judgeTakeOver(answers []answer) verdict {
	lasted := time.Duration(-1)
	for _, row := range answers[0].rows {
		beat, errBeat := time.Parse(timeLayout, row[0])
		taken, errTaken := time.Parse(timeLayout, row[1])
		if errBeat != nil || errTaken != nil {
			return verdict{refuted, fmt.Sprintf("%v holds no times", row)}
		}
		lasted = max(lasted, taken.Sub(beat).Round(time.Millisecond))
	}
	text := fmt.Sprintf("%s, promised at most %s", lasted, takeOverPromise)
	switch {
	case lasted < 0:
		return verdict{refuted, "no queue was taken over"}
	case lasted > tolerance*takeOverPromise:
		return verdict{refuted, text}
	case lasted > takeOverPromise:
		return verdict{slow, text + fmt.Sprintf("; above %d times as much it would be a failure", tolerance)}
	}
	return verdict{proved, text}
}
