// Package firing owns one timer partition: it loads what waits, and fires each
// task when it is due.
//
// Owns: the goroutine that alone touches the due table; the order "store, then
// forget": a chunk of tasks is in the history log, in one atomic batch with the
// cursor that covers it, before the table forgets it, and a tombstone is in the store
// before anyone is told that a task is cancelled.
//
// Never does: assume that it is the only owner. Each append names the cursor it
// builds upon; who builds upon an old one is refused and stops. Two owners of
// one partition therefore cost time and never a second firing.
//
// On failure: while NATS is away it tries again; what it does not know the
// outcome of it asks for before it goes on. It ends with ErrOvertaken when
// another owner has fired; whoever runs it starts it anew, from the store.
//
// A race it leaves open: with two owners at once, a cancel that meets another
// owner's cursor is not answered, and the task may have been fired all the same.
// Asked again, it is reported as cancelled, and as maybe fired. History has the
// cancel in its log, looks for the fired record there, and cancels that one.
package firing
