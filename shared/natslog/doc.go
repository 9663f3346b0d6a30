// Package natslog appends to JetStream streams and reads them in order.
//
// Owns: what is known after an append that failed (stored, not stored, or not
// known), atomic batches, and a cursor that hands out each record once, in order,
// across restarts of the server and pauses of the reader.
//
// Never does: retry an append, keep a position, or know what a record means. Who
// repeats an append does so with the same MsgID; who reads keeps the sequence.
//
// On failure: appends return an error that wraps ErrNotStored, ErrOutcomeUnknown
// or ErrDuplicate. Readers carry on by themselves while the server is away; they
// return only where reading on makes no sense, such as a stream that is not there.
//
// Looking a message up ends with an error after some seconds without an answer, whatever
// the caller's deadline: a stream without a leader does not answer at all.
//
// Everything that decides something is asked of the stream's leader. The servers'
// direct gets, and readers, may be served by a follower, which may lag.
package natslog
