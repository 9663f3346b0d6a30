// Package validate checks the requests of the public API and turns accepted
// tasks into the records of the log.
//
// Owns: every limit of the API (limits.go), the path of the field at fault, and
// how a task's effective policy and due time are resolved. It is the only place
// where a value that came from outside is checked: whatever lies behind it may
// rely on the ranges in the .proto files.
//
// Never does: decode bytes, read a clock, or look up a domain; the time and the
// task types come in as values.
//
// On failure: a *fault.Error with the code and the JSON pointer of the first
// field at fault (`/tasks/3/delay_ms`). A request is refused whole.
package validate
