// Package api is a shard's side of NATS: the hint stream, polls, verdicts and
// hints that come in, the events, answers and questions that go out.
//
// Owns: the subscriptions of one ownership of a shard, the consumer of its hint stream, and
// how messages are read and written; polled tasks are spliced into protobuf answers
// without being decoded. The inbox of verdicts is this ownership's own: nothing that was
// sent to an owner before is ever read.
//
// Never does: decide anything; the core does.
//
// On failure: what cannot be read is logged and dropped, so that a poison message
// wedges nothing. A lost hint stream is made again, and the core learns that hints were
// lost. The consumer carries the ownership's epoch: who finds one of a higher epoch is overtaken.
// A connection that is away loses what is sent meanwhile; the core sends again what matters.
package api
