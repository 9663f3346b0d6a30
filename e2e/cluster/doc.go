// Package cluster runs a whole Yardmaster as real processes, for tests that kill
// them: nats-server, redis-server, and any number of each service, on loopback.
//
// Owns: the binaries (built once per run of a test package, without the race
// detector), the processes and their logs, which a failed test prints.
//
// A sealed cluster (WithSealed, or all of them with YARD_SEALED=1 in the environment) has TLS and the
// users of `yard auth render`: services and clients log in, and what a NATS server refused
// them fails the test.
//
// Never does: look into a process. It sees what an operator sees: health pages,
// exit codes and logs.
//
// On failure: a process that does not become ready, or that ends when no one
// killed it, fails the test. All processes die with the test's.
package cluster
