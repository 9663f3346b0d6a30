// Package clients shows that any NATS client will do: programs in other languages,
// with the official client library of theirs and JSON, against the whole system.
//
// Owns: the tests of the clients in contracts that are not Go, a folder of programs per language; and that the page
// for all others, contracts/docs/other-languages.md, is what the engine says.
// Never does: hold what a user would copy; that stands in contracts.
// On failure: the program's own output says which step went wrong. A language whose
// tools are not on the machine is a failure.
package clients
