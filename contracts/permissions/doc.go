// Package permissions is what each kind of user may publish and subscribe to on a
// sealed cluster, generated from package topology.
//
// Owns: the roles, and the lists of each. They are allow lists only: what no list
// names is refused by the NATS server. Never does: write a server's configuration,
// or make keys; that is infra/yard.
//
// On failure: a user whose name or domain cannot be a subject token is an error.
// A list that lacks a subject shows as a permissions violation in the server's
// log, and the end-to-end tests fail on one.
package permissions
