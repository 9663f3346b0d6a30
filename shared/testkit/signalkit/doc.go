// Package signalkit gives tests what receives the system's signals: metrics of a test's own, and a sink for traces.
//
// Owns: the sink's server, which ends with the test.
//
// Never does: check what it received. It is apart from testkit, because a test that links telemetry takes longer to build.
//
// On failure: a sink that cannot start fails the test at once.
package signalkit
