// Package stack is the whole system in one process: a nats-server with JetStream
// in a data directory, the four services, and the tables and slots in the best
// place this machine has for them.
//
// Owns: which parts there are, the order in which they start and stop, and the
// choice of the tables: the Redis it is given, else a redis-server found on the
// machine and started as a child, else memory. Each service has a connection of
// its own to the server, in process, and knows nothing of the others.
//
// Never does: anything a cluster of processes would not. The services are the same
// packages that their binaries run, on the same streams, so a data directory can
// be served by either.
//
// On failure: what cannot be started is an error of Start, and nothing is left
// running. A service that fails later stops the stack; Done tells, and Err why.
package stack
