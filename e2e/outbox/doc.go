// Package outbox tests the outbox with the real engine: tasks of committed transactions run once, in the order of their keys.
//
// Owns: a quick test with SQLite, and a long one with processes: PostgreSQL, `yard relay` and the engine are killed under load.
//
// Never does: test what the module tests alone, with an engine that it makes up.
//
// On failure: the report names the tasks that are lost, stored twice or out of order.
package outbox
