// Package clock tells a node the time of the NATS server, which dates the log. Times that must agree with the log
// are that time: ids, due times, firing, leases of attempts. So a node whose own clock is
// wrong does no harm.
//
// Owns: how far this node's clock is off, found by looks at the server's, and what is said about it.
//
// Never does: set a clock, or compare the clocks of two nodes, or of two NATS servers: those must agree
// among themselves. Durations, leases of ownership and deadlines of calls need no clock: they are measured on
// each node by one that no one sets.
//
// On failure: while the server does not answer, the last looks hold; the node's time then drifts from the
// server's by milliseconds in a minute.
package clock
