// Package doctor says what is wrong with a roster, and what helps.
//
// [Diagnose] checks the database and all task types of an environment, or one of them, and returns findings of package
// condition. [DiagnoseFile] compares a rota.yaml with the database. They change nothing: a right is tried with a
// statement that matches no row. A diagnosis takes about a hundred statements, and reads all queues.
//
// A screen that is renewed all the time keeps a [Judgement], and renews it with [Judge]: the findings, since when they
// hold, and why it is not known any more whether they do. Whatever says that something is wrong or right derives from a
// Judgement, so that lists, screens, pages and metrics count and name the same.
//
// All functions may be called concurrently and obey their context. A Judgement is a value. Diagnose returns an error if
// it cannot read the roster; a data database that is away is a finding, because the others can be read. Judge returns
// no error: that the checks have failed is a part of what it says.
//
// Each type of check (databaseCheck, clusterCheck, dataCheck, rosterCheck, serverCheck, queueCheck, runCheck) adds the
// findings about one subject. What a worker sees of its own process, it reports as an alert (package manager); the
// doctor shows the alerts that no check of its own covers.
//
// Why functions that take the client of package ops: a type Doctor would hold that client and nothing else, and methods
// of the client itself made each reader of a table, such as a worker, import all checks. Why a Judgement is passed in
// and returned: the caller knows how long its screen may show the same, and a cache inside would have to be told.
package doctor
