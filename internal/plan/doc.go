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
// # What is even
//
// Three measures say how much each server should get. The input decides which one a plan takes.
//
// Shares (rounding), if all servers may get all queues: the shares are in proportion to the weights, rounded down or up
// (P2). 10 queues on three servers of one weight are 4, 3 and 3. Any of the servers may have the 4, so a server that
// has 4 already keeps them.
//
// Squares (flow), if pins (P14) or calls that hang (P9) keep some server from some queue. Suppose that four queues are
// pinned to a zone with two servers. They should be two for each, and the other queues of these servers make room for
// them: so the quotas do not follow from the weights alone. The plan makes the sum of the squared numbers, each divided
// by the weight, as small as the pins allow: 4 and 0 are 16, and 2 and 2 are 8. It moves queues along chains of servers
// while that makes the sum smaller, and then undoes the moves that the sum does not need. A simpler way was tried: to
// assign the pinned queues first, one by one, and to even out the rest by the others. It left all four with one server.
//
// The squares could not replace the shares. Two queues on servers of the weights 4, 1, 1, 1 and 1 are shares of 1 for
// the first one and a quarter for each other. By the squares, the first one has both: 2*2/4 is less than 1*1/4 + 1*1/1.
//
// Loads (loadBalancing), if the loads of the queues are to be even and not their numbers (P16). It is a search by
// single moves. Each move makes the busier of two servers less busy. The steps of the other measures are too slow for
// loads. They need rows that can stand in for each other: a quota is a number of rows of a group, and a chain leads
// from group to group. But if each row has its own load, each is a group of its own. With 2,000 such queues on 200
// servers, these steps take 350 ms when a server joins, and more than five times as long for twice the roster. The
// search by load takes 4 ms. Nor can it replace the other two: with equal loads, it missed a chain that helps in 124 of
// 2,384 small rosters with pins. For loads it is good enough, because they are measured to a few percent, and nothing
// moves within 15. Packing the queues anew evens the loads better, and moves nearly all of them. Chains of two moves,
// where no single one helps, were tried, too: of 2,000 small rosters with pins they brought 1,944 within a quarter of
// the optimum instead of 1,919, and without pins 1,989 instead of 1,982.
//
// All three count in a tally what servers and zones get, or will get, and find the next taker in a ranking.
//
// # Totals of processes
//
// Twenty task types of one queue each would all be with the process that is the oldest. So when nothing else moves, a
// plan compares what the processes have of all task types, and rounds up those with less (P15). If all processes serve
// all task types, such single moves leave totals within one queue of each other. To choose for all task types at once
// was tried, along chains of processes: where processes serve different task types, it found more. It needed the queues
// of all task types, and a place in the database for its choice. A rank by a hash of task type and process needs no
// totals at all, but left 12 queues between the largest and the smallest one, with 20 task types.
//
// # Reasons
//
// Each change carries the Rule that moves the queue (P8): the first one that would be broken if the queue stayed. The
// measure knows it when the plan has decided. Before, another package derived it from the rows and the settings, and
// named any rule that happened to be set.
//
// # Programs of two versions
//
// Programs whose rules differ would undo each other's plans. So the rules have a Version, and only the servers of the
// oldest version plan (P11).
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
//
// # Files, in reading order
//
//	plan.go rule.go                       the input, the result, Plan, and the reasons of moves
//	planning.go                           the steps of a plan: assign, grant, request
//	roster.go groups.go labels.go         what a plan reads: rows, servers, which server may get which row,
//	returning.go order.go                 reserved queues, and the order of ids
//	quota.go                              shares
//	tally.go ranking.go                   what servers have, and which one is next
//	flow.go flow_chain.go flow_moves.go   squares: quotas, chains, and moves that can be saved
//	load.go load_place.go load_even.go    loads: the parts, moves that rules demand, moves that even
//	totals.go                             totals of processes, which choose between servers that are even
//	share.go                              calls in flight
package plan
