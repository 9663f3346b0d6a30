// Package sealed runs stacks on servers with exactly the users and permissions that
// `yard auth render` writes, and connects as one of them.
//
// Owns: the users that tests need, and the count of what the server refused them.
// Never does: hand out more rights than a role has; what a test looks at inside it
// looks at through Stack.Connect.
//
// On failure: a server that refused something says so in Log, and Refused lists it.
package sealed
