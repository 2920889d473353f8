// Package program executes batches of items in a program of any language: a process that is kept running and speaks
// JSON lines (Command), or a service that gets POST requests (HTTP). docs/workers.md describes the protocol for the
// authors of programs, and schema.json its texts.
//
// One request is one batch, and one reply says what became of each of its rows. A process has one request at a time, so
// that a program needs no threads and cannot answer the wrong request. The executors of a worker use several processes
// beside each other. The alternative, one process with requests in any order, would make each program a server.
//
// A reply is either right or it fails the whole batch: a row that is missing, unknown or named twice shows that the
// program and the worker do not mean the same rows. After such a reply a process is killed, because what it writes next
// may belong to an earlier request. The rows are retried as those of any failed batch.
//
// A Dealer is a program that selects its items, too. It gets the other operations by requests of the same form, so that
// one loop of a program serves all of them. It is asked only for what the file lists: to ask for each operation once
// and to take an error for a no would lose an operation for good when the program fails at that time. A select with
// more items than the limit fails. To cut it would hide a program that does not read the request, and so may not divide
// its items either. The idempotency key has the operation, because a discard has the items of an execute before it, and
// a service that remembers keys must not take one for the other.
//
// An endpoint that was there before, and knows nothing of the protocol, gets a request of its own for each row
// (EachOptions). Its status is what became of the row. The request is made of templates whose values are escaped for
// their place. text/template was rejected, because it has one way to escape for a whole text, and a path, a query, a
// header and JSON need four. The worker marks the rows itself when all calls of the batch have ended.
//
// A process is the leader of a process group. The group is killed when the context of its batch ends, and Ask returns
// when it is dead, so that a queue is not handed over to another worker while the program still works. When the worker
// is killed, Linux kills the program, too, and elsewhere its input ends.
package program
