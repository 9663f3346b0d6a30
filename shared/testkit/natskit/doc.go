// Package natskit starts real NATS servers with JetStream inside the test's process, and stops them when the test ends.
//
// Owns: the servers, each on a free loopback port, with its data in the test's own temporary folder.
//
// Never does: fake a server. It is apart from testkit, because a test that links nats-server takes a second longer to build.
//
// On failure: a server that does not come up fails the test at once.
package natskit
