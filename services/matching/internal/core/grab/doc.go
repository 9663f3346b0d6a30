// Package grab is the grabs of a shard: the triggers that history is asked for until it has decided, and the attempts that it granted until
// their workers have them.
//
// Owns: the way to each history partition (the fence, the batches under way, the grabs that gather for the next one, the triggers that are
// set aside while the partition is silent), the last grabs, the attempts to be handed back, and the tasks and attempts to be stopped.
// Never does: choose a poll, send an answer, book a slot or read a table. It returns the grabs that are over,
// and what follows from each (End). On failure: a batch is repeated until it is answered. A partition is silent if a verdict is late by
// SilentAfter and the partition has answered nothing for as long: a partition that is slow, but answers, is not silent. It gets few grabs,
// its triggers are set aside, and polls wait for others.
package grab
