// Package auth writes the nats-server configuration of a sealed cluster: accounts,
// one user for each service and for each tenant, worker and operator that is named,
// what each may publish and subscribe to (package permissions), and TLS.
//
// Owns: the file's form and the key files beside it. A key that exists stays, so
// rendering again changes only what was asked for. Never does: print a seed, or put one
// into the configuration, which holds public keys only.
//
// On failure: an error that names the file or the user; keys that were made until
// then stay, and are used the next time.
package auth
