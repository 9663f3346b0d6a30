// Package storage tells whether the history log has room for further tasks.
//
// Owns: what limits the storage (the account's limit, a stream's own, and one that the operator
// names), the reserve that is kept for what goes on with accepted tasks, and when tasks are
// taken again.
//
// Never does: refuse anything itself. The owner of a partition reports it to the frontends, and the
// timer fires nothing meanwhile.
//
// On failure: where JetStream does not answer, what was last known stays so.
package storage
