// Package attack tries to reach from a tenant's, a worker's and no one's connection
// what is not theirs, on a sealed cluster: several hundred attempts, generated from
// package topology, of which none may get through.
//
// Owns: the attempts and when one counts: the server took it, or it had an effect.
// Never does: test that legitimate use works; the scenarios do, on the same
// permissions. The same attempts against a server without them show that the suite
// can fail.
package attack
