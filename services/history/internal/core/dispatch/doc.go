// Package dispatch keeps the tasks of a partition by tasklist, and what matching knows of them.
//
// Owns: what is counted of each tasklist; the columns, in which matching grants tasks in the order in which they became
// ready; which triggers were sent, and are sent again, since they may be lost (I5); which matching shard has a running
// attempt, and whether that may not have reached its worker; the fences of the owners of a shard.
// Never does: change a task, but for the shard of its attempt; or decide about an event.
// On failure: there is none. But for the fences nothing here is agreed with other owners: what follows from it is a
// hint, or proposed to the log.
//
// # Deliveries
//
// Lists remember what each owner of a shard was granted, until the owner says that the batch was delivered, or the worker is heard of, or
// the attempt is over. This is rebuilt from the log, and a snapshot has it; no decision depends on it. If the lease of such an attempt runs out, its shard
// has a moment to say so, or to be fenced; then the proposal to expire it says that it may never have been received, and so the log does. Such an attempt
// costs nothing, up to the 100th grant of its task.
//
// # Partitions of a tasklist
//
// A task is given a partition of its tasklist when it comes, and another one if that is no more where a trigger is sent (decision 0030). Owners need not
// agree about it. They agree about the shard that an attempt was granted to, where its slots are counted and freed: a snapshot names it.
package dispatch
