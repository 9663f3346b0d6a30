// Package firing owns one timer partition: it loads what waits, and fires each task when it is due.
//
// Owns: the goroutine that alone touches the due table; the order "store, then forget": a chunk of tasks is in the history log, in one atomic batch with
// the cursor that covers it, before the table forgets it, and a tombstone is in the store before a caller learns that a task is cancelled.
//
// Never does: assume that it is the only owner. Each append names the cursor it builds upon; who builds upon an old one is refused and stops. Two owners
// of one partition therefore cost time and never a second firing.
//
// On failure: while NATS is away it tries again; what it does not know the outcome of it asks for before it goes on. It ends with ErrOvertaken when
// another owner has fired; the operator's tool starts it again, from the store.
//
// A cancel is answered only behind a cursor that this owner has stored after the tombstone, no matter which owner wrote that one. The log refuses the
// cursor of an owner that was overtaken, so what such an owner has in memory is never an answer; history asks the next one.
//
// One case is left: a tombstone of which the owner was overtaken, or died, before its cursor. Another owner may have fired the task, before or after it. A
// client that asks again hears that the task is void, and whether it may have been fired. History then looks for the fired record in its log, and cancels
// that one.
package firing
