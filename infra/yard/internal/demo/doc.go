// Package demo is a realistic workload of three tenants on the Go SDK: a shop
// that sends e-mails, a media site that makes thumbnails, and payouts through a
// bank that fails every fifth call.
//
// Owns: its tenants' programs (producers, two workers each, the bank), the live
// view, and the proof at the end: every task id that was accepted is looked up
// again and must have finished exactly once.
//
// Never does: start or stop the engine, or use anything of it but the public
// API; it runs as well against a cluster. It writes nothing to disk.
//
// On failure: a submit that is refused or whose result is unknown is counted and
// shown, and the work goes on. A failed claim ends Run with ErrUnproven,
// after the summary has reported it.
//
// Read in this order: demo.go (the phases), tenants.go (the workload), producer.go,
// work.go and bank.go (what is done for a task), ledger.go (what the tenants saw, and
// what the engine says at the end), proof.go, then the display: display.go, view.go.
package demo
