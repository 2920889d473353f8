// Package verbs is what operators can do to a roster, each thing once. The commands of rota, with their flags and their
// help, and the forms of the console derive from it, so that both have the same verbs, the same words and the same
// previews.
//
// A [Verb] says what it is called, which arguments it takes and which right it needs. Its [Call] checks the arguments
// and returns a [Change], which says what would happen and then does it. A program can do the same with the arguments
// of a verb as a struct:
//
//	change, err := verbs.PinQueue{TaskType: "settle", Queue: "3", Labels: "zone=b"}.Prepare(ctx, ops.New(c))
//	if err == nil {
//		done, err = change.Do(ctx, "deploy@ci")
//	}
//
// Verbs never change, and may be used concurrently, as may Prepare. A Call and a Change belong to one goroutine.
// Prepare returns [ErrMissing] if a value is missing, and errors that name what it has not found, such as
// [ErrUnknownQueue], ops.ErrUnknownServer or center.ErrUnknownTask. Do returns the errors of the store as they are:
// ops.ErrChanged means that what was prepared is not so any more.
//
// Why a change is prepared first: an operator who is asked "drain web1?" wants to know how many queues move and where
// to, and a page that asks is read minutes before the button is pressed. Prepare reads, Do writes. Do does not assume
// that what Prepare has read is still so: the store checks each change again in its transaction.
//
// Why not an interface per verb or methods of one large type: the arguments are plain structs, so a program gets errors
// from the compiler, and the commands and forms get their fields by reflection, in one place. Methods of the bundles of
// package ops, such as Queues.Pin, would have no place for a help, a preview and what nobody can undo.
//
// The verbs do not import the doctor, and the doctor does not import them: the hint of a finding names a command as its
// user types it, and the console finds the verb of that name.
package verbs
