// Package firing owns one timer partition: it loads what waits, and fires each task when it is due, or before if a command needs it.
//
// Owns: the goroutine that alone touches the due table; the order "store, then forget": a chunk of tasks is in the history log, in one atomic batch with
// the cursor that covers it, before the table forgets it.
//
// Never does: assume that it is the only owner. Each append names the cursor it builds upon; who builds upon an old one is refused and stops. Two owners
// of one partition therefore cost time and never a second firing.
//
// On failure: while NATS is away it tries again; what it does not know the outcome of it asks for before it goes on. It ends with ErrOvertaken when
// another owner has fired; the operator's tool starts it again, from the store.
package firing
