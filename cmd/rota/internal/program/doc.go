// Package program executes batches of rows in a program of any language: a process that is kept running and speaks JSON
// lines (Command), or a service that gets POST requests (HTTP). docs/workers.md describes the protocol for the authors
// of programs, and schema.json its texts.
//
// One request is one batch, and one reply says what became of each of its rows. A process has one request at a time, so
// that a program needs no threads and cannot answer the wrong request. The executors of a worker use several processes
// beside each other. The alternative, one process with requests in any order, would make each program a server.
//
// A reply is either right or it fails the whole batch: a row that is missing, unknown or named twice shows that the
// program and the worker do not mean the same rows. After such a reply a process is killed, because what it writes next
// may belong to an earlier request. The rows are retried as those of any failed batch.
//
// A process is the leader of a process group. The group is killed when the context of its batch ends, and Execute
// returns when it is dead, so that a queue is not handed over to another worker while the program still works. When the
// worker is killed, Linux kills the program, too, and elsewhere its input ends.
package program
