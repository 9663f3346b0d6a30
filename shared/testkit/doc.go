// Package testkit starts what a test needs and stops it when the test ends: a
// real NATS server with JetStream, a real Redis, a sink for traces. It also has
// the small things that every test needs: a seed that is printed, a wait for a
// condition, comparisons, golden files, and what a quick run leaves out.
//
// Owns: the servers it starts, each on a free loopback port with its data in the
// test's own temporary folder, so tests may run in parallel and leave nothing.
//
// Never does: fake a server, sleep on hope, or skip a test silently. It is
// imported by tests only; production code that imports it is an error.
//
// On failure: a server that does not come up fails the test at once with what
// the server said.
//
// The package keeps one value per process, because the testing package is itself per process: the -update flag.
package testkit
