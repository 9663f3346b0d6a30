// Package api is a shard's side of NATS: the hint stream, polls, verdicts and
// hints that come in, the events, answers and questions that go out.
//
// Owns: the subscriptions of one shard while it is served, and how messages are
// read and written; polled tasks are spliced into protobuf answers without being
// decoded. Never does: decide anything; the shard does.
//
// On failure: what cannot be read is logged and dropped, so that a poison message
// wedges nothing. A lost hint stream is made again. A connection that is away loses
// what is sent meanwhile, which every asker bears.
package api
