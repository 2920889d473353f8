// Package ops is what operators and their programs see of a roster, and what they can do to it, each thing once.
//
// A [Client] reads: its bundles, [Client.Tasks], [Client.Queues], [Client.Servers], [Client.Items], [Client.Runs],
// [Client.Triggers], [Client.Backfills] and [Client.Events], list what there is, and [Client.Diagnose] checks the
// database and all rosters. Records are read without locks, because the protocol does not depend on them.
//
// A [Verb] says what it is called, which arguments it takes and which right it needs. Its [Call] checks the arguments
// and returns a [Change], which says what would happen and then does it. The commands of rota, with their flags and
// their help, and the forms of the console derive from the verbs, so that both have the same verbs, the same words and
// the same previews.
//
// A program can do the same with the arguments of a verb as a struct:
//
//	change, err := ops.PinQueue{TaskType: "settle", Queue: "3", Labels: "zone=b"}.Prepare(ctx, ops.New(c))
//	if err == nil {
//		done, err = change.Do(ctx, "deploy@ci")
//	}
//
// Why a change is prepared first: an operator who is asked "drain web1?" wants to know how many queues move and where
// to, and a page that asks is read minutes before the button is pressed. Prepare reads, Do writes. Do does not assume
// that what Prepare has read is still so: the store checks each change again in its transaction.
//
// Why not an interface per verb or methods of one large type: the arguments are plain structs, so a program gets errors
// from the compiler, and the commands and forms get their fields by reflection, in one place.
package ops
