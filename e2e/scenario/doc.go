// Package scenario holds the whole system to what it promises, seen from outside:
// four services on a real NATS server, spoken to over NATS as any program would,
// in JSON, or by the Go SDK.
//
// Owns: what a user can observe: states and histories of tasks, verdicts, order,
// limits, and that what is promised per batch costs a message per batch. Each
// scenario runs on a stack with its tables in memory and, where there is a
// redis-server, on one with its tables in Redis, in a domain of its own.
//
// Never does: look inside a service, or decide by the clock; a wait ends when what
// it waits for is so. Processes and their deaths are e2e/cluster's and e2e/chaos's.
//
// On failure: the scenario's name says which promise is broken.
package scenario
