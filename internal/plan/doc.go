// Package plan computes which server should own which queue. It is pure: it does no I/O, reads no clock, and the order
// of its input does not matter.
//
// A plan moves as little as it can. It assigns a queue without a live owner at once (P5). It never takes a queue from a
// live owner: it writes a request into the row, and the owner hands the queue over when it has drained it. Queues are
// assigned round robin, but a server keeps the queues that it has, up to its quota (P2, P3, P4). Plain round robin over
// all queues would move nearly all of them when a server joins, where a tenth suffices.
//
// A plan assigns twice (P6): first the queues without an owner, then all queues over that result. A single pass would
// request moves that the next plan withdraws. With two passes, planning again over the result changes nothing.
//
// The shares of the servers are in proportion to their weights, rounded down or up (P2). Where they may be rounded
// either way, the number of moves decides. Limits can leave out servers, which stand by (P12).
//
// BalanceTotals chooses, over all task types, whose shares are rounded up, so that the processes have equal numbers of
// queues (P15). It is a problem of its own, a semi-matching: single moves, by way of other processes where need be,
// reach the least sum of the squares.
//
// A plan can even the loads of the queues instead of their numbers (P16). It is a local search: each move makes the
// busier of two servers less busy. To pack the queues anew would even the loads better, and move nearly all of them.
//
// A queue that is reserved for a server that returns soon is not assigned (P13). The server gets it back by its name.
//
// Programs whose rules differ would undo each other's plans. So the rules have a Version, and the lock row says which
// one is in force (P11). A program that plans by the rules of several versions says so by OldestVersion.
//
// Queue ids sort naturally (P1) by CompareIDs. The order of maruel/natural compares some numbers as bytes. It is not
// transitive, so that a sort by it has no defined result.
//
// ShareOut divides max_in_flight among the servers of a plan (P10). It also decides how many calls a server may have in
// flight at present, because a share can rise only when another server has lowered its own.
//
// A server does not get a queue for which a call of its process's former session is still in flight (P9), or whose pin
// it does not meet (P14). With such queues the shares do not follow from the weights alone, and evening computes them:
// it moves queues along chains of servers while that makes the sum of the squared numbers smaller. Zones, limits and
// weights take part in the same comparison. To assign these queues first, one by one, and to let the others balance the
// rest would leave four queues of a zone with one of its two servers.
package plan
