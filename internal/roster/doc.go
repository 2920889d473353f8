// Package roster is the ownership protocol: which server owns which queue, in the tables of package schema. It registers
// servers, writes heartbeats, rebalances queues under the lock row, expires dead servers and hands queues over. It knows
// servers, queues and epochs, and nothing of items, settings or runs.
//
// Package manager calls it for each server of a process; the bundles of package center call it for operators. The rules
// and their reasons are in docs/protocol.md.
package roster
