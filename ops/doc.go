// Package ops is what operators and their programs read of a roster, each thing once.
//
// A [Client] has a bundle for each kind of thing: [Client.Tasks], [Client.Queues], [Client.Servers], [Client.Items],
// [Client.Runs], [Client.Triggers], [Client.Backfills], [Client.Events] and [Client.DataDatabases] list what there is.
// [Queues.Plan] says what a plan would do, and [Queues.Pending] what is left to do. Records are read without locks,
// because the protocol does not depend on them.
//
// A bundle also writes what a program changes by a call, without asking anybody: [Tasks.Define], [Tasks.Apply] and
// [Tasks.Delete], [Items.Retry] and [Items.Drop], and the submissions of runs. Workers call [Client.Clean],
// [Client.ExpireOwnSigns] and [Queues.SaveBacklogs].
//
// Two packages stand on this one, and neither imports the other. Package verbs is what operators do: it checks, shows
// what would happen, and does it. Package doctor says what is wrong and what helps. So a program that reads a list
// imports neither the words of the commands nor the checks of the doctor.
//
// A Client and its bundles may be used concurrently; an [EventFollower] and [ItemRates] may not. All methods obey their
// context. An error that a caller branches on is a sentinel of this package, such as [ErrUnknownServer] or
// [ErrChanged], of package center, such as center.ErrUnknownTask, or of package runs.
//
// Why the bundles write: who defines, compares and applies settings needs the same rows and versions as who reads them,
// and a worker defines its task type when it starts. The alternative, writes in package verbs alone, would need all of
// these exported. Why the preview of a plan is no verb: it writes nothing, and the doctor and rota plan need it, too.
package ops
