// Package sdk holds the tests of the Go SDK (contracts/yard) on a real NATS
// server. They live here since contracts must not depend on a server.
//
// Owns: what only a real connection shows: withdrawn polls, lost answers,
// reconnects, headers. Never does: test the engine; a small fake one speaks its
// wire protocol, and can be told to misbehave.
package sdk
