package roster

import (
	"context"
	"fmt"
	"slices"

	"github.com/dutyrota/rota/internal/plan"
)

// PlannerInForce returns by which rules the queues are divided while these servers live (P11). A version that some server
// knows stays in force, and newer rules come into force when all know them. If all servers that knew the version in force
// are gone, as after the program was rolled back, the newest version that is left comes into force.
func PlannerInForce(inForce int, servers []ServerRow) int {
	if len(servers) == 0 {
		return inForce
	}
	byVersion := func(a, b ServerRow) int { return a.PlannerVersion - b.PlannerVersion }
	newest := slices.MaxFunc(servers, byVersion).PlannerVersion
	if newest < inForce {
		return newest
	}
	return max(inForce, slices.MinFunc(servers, byVersion).PlannerVersion)
}

// mayPlan reports whether this program plans by the rules in force: it knows those from plan.OldestVersion on. It first brings other rules into force if the servers call
// for them. A program that does not know the rules does not plan: it would undo the plans of the servers that do.
func mayPlan(ctx context.Context, l *LockTx, servers []ServerRow, actor string) (bool, error) {
	inForce := PlannerInForce(l.versions.planner, servers)
	if inForce < plan.OldestVersion || l.plannerVersion < inForce {
		return false, nil
	}
	if inForce == l.versions.planner {
		return true, nil
	}
	reason := fmt.Sprintf("planner version %d is in force, after %d", inForce, l.versions.planner)
	l.versions.planner = inForce
	_, err := l.Exec(ctx, `UPDATE schedule_task_running SET planner_version = ? WHERE task_type = ? AND own_sign = ?`, inForce, l.TaskType, l.OwnSign)
	if err == nil {
		err = l.Record(ctx, Event{Kind: EventPlanner, Actor: actor, Reason: reason})
	}
	return err == nil, err
}

// correctOwnVersion writes the version that this program knows to the row of its server, if the row says another one: it was
// edited by hand. Otherwise every server could wait for another to plan, for as long as they live.
func correctOwnVersion(ctx context.Context, l *LockTx, servers []ServerRow, actor string) error {
	own := slices.IndexFunc(servers, func(s ServerRow) bool { return s.UUID == actor })
	if own < 0 || servers[own].PlannerVersion == l.plannerVersion {
		return nil
	}
	reason := fmt.Sprintf("planner_version of %s was edited: %d, and its program knows %d", actor, servers[own].PlannerVersion, l.plannerVersion)
	servers[own].PlannerVersion = l.plannerVersion
	_, err := l.Exec(ctx, `UPDATE schedule_server SET planner_version = ? WHERE uuid = ?`, l.plannerVersion, actor)
	if err != nil {
		return fmt.Errorf("correct the planner version of %s: %w", actor, err)
	}
	return l.Record(ctx, Event{Kind: EventPlanner, Actor: actor, Reason: reason})
}

// giveUp returns the changes that leave the queues of a server without an owner. A server that leaves makes them if it does
// not know the rules in force: the servers that know them plan with their next heartbeats.
func giveUp(queues []plan.Queue, uuid string) (changes []plan.Change) {
	for _, q := range queues {
		switch uuid {
		case q.Owner:
			changes = append(changes, plan.Change{QueueID: q.ID, OldOwner: uuid, OldEpoch: q.Epoch})
		case q.Requester:
			changes = append(changes, plan.Change{QueueID: q.ID, OldOwner: q.Owner, OldEpoch: q.Epoch, Owner: q.Owner})
		}
	}
	return changes
}
