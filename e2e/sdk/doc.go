// Package sdk holds the tests of the Go SDK (contracts/yard) on a real NATS server with the engine
// behind it. They live here since contracts must not depend on a server: there a small one in memory
// and a fake engine, which can be asked to misbehave, stand for both.
//
// Owns: what only the real ones prove: polls that are withdrawn, and connections that end.
// Never does: test the engine.
package sdk
