// Package plan computes which server should own which queue. It is pure: it does no I/O, reads no clock, and the order
// of its input does not matter.
//
// # Moving little
//
// Suppose that 9 servers own 90 queues, 10 each, and a tenth server joins. Its share is 9 queues, one from each of the
// others. A round robin over all queues would move 81 of the 90, because queue i goes to server i modulo 10 and no
// longer modulo 9. So a server keeps the queues that it has, up to its quota, and only the rest is assigned round robin
// (P2, P3, P4). A queue without a live owner is assigned at once (P5). A plan never takes a queue from a live owner: it
// writes a request into the row, and the owner hands the queue over when it has drained it.
//
// A plan assigns twice (P6): first the queues without an owner, then all queues over that result. Granted queues count
// towards the quotas, so that a single pass would request moves that the next plan withdraws. With two passes, planning
// again over the result changes nothing.
//
// # Quotas
//
// The quotas are in proportion to the weights, rounded down or up (P2): 10 queues on three servers of one weight are 4,
// 3 and 3. Which server has the 4 is free, so that it is one that has 4 already. BalanceTotals decides it if the
// process has servers of several task types: twenty task types of one queue each would otherwise all be with the oldest
// process (P15). It moves the one queue that is left over along chains of processes as long as that makes the sum of
// the squared totals smaller. This is the semi-matching problem, in which no better result is left when no chain helps.
//
// Pins (P14) and calls that hang (P9) keep some server from some queue. Suppose that four queues are pinned to a zone
// with two servers. They should be two for each, and the other queues of these servers make room for them: the quotas
// do not follow from the weights alone. To assign the pinned queues first, one by one, and to let the others even out
// the rest, left all four with one server. So flow computes the quotas: it moves queues along chains of servers
// while that makes the sum of the squared numbers smaller, and then undoes the moves that the sum does not need.
//
// # Loads
//
// A plan can even the loads of the queues instead of their numbers (P16). It is a search of its own, by single moves of
// which each makes the busier of two servers less busy. The steps of the planner by number with another measure would
// not do. They rest on rows that can stand in for each other: a quota is a number of rows of a group, and a chain leads
// over groups. If each row has its own load, each is a group of its own. With 2,000 such queues on 200 servers, the
// steps by number take 350 ms when a server joins, nearly a hundred times as long as the search by load (4 ms), and
// more than five times as long for twice the roster. The other way round, the search by load left a chain that helps in
// 124 of 2,384 small rosters with pins, when all loads were alike. For loads that is good enough: they are measured to
// a few percent, and nothing moves within 15. Packing the queues anew evens the loads better, and moves nearly all of
// them.
//
// # Reasons
//
// Each change carries the Rule that moves the queue (P8): the first one that would be broken if the queue stayed. The
// steps of the planner know it when they have decided. To derive it afterwards from the rows and the settings was
// tried, in another package. It named a rule that happened to be set.
//
// # Programs of two versions
//
// Programs whose rules differ would undo each other's plans. So the rules have a Version, and the lock row says which
// one is in force (P11). A program that plans by the rules of several versions says so by OldestVersion.
//
// # Order of ids
//
// Queue ids sort naturally (P1) by CompareIDs. The order of maruel/natural compares some numbers as bytes. It is not
// transitive, so that a sort by it has no defined result.
//
// # Calls in flight
//
// ShareOut divides max_in_flight among the servers of a plan (P10). It also decides how many calls a server may have in
// flight at present, because a share can rise only when another server has lowered its own.
package plan
