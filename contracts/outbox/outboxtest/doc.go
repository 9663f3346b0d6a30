// Package outboxtest starts real databases for tests.
//
// Owns: a server of PostgreSQL or MariaDB in a temporary folder, which ends with the test.
// Never does: use a server that runs, or install one.
// On failure: without YARD_TESTS=all it skips the test; with it, a missing program fails the test.
package outboxtest
