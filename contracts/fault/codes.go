// Package fault is the only error that crosses a process boundary.
//
// Owns: the closed list of codes, the Error type, and how an Error is written
// into a NATS message: the code and its text travel in micro's error headers,
// the structured detail in the body. Never does: decide policy; a code says
// what happened, the caller decides whether to retry (see Code.Retryable).
// On failure: an unknown code read from the wire becomes Internal and keeps
// the original code in its message, so that an old client survives a new server.
package fault

import (
	"maps"
	"slices"
)

// Code names what went wrong. The list is closed and its values are never
// reused: clients of other languages match on the text.
type Code string

// The codes.
const (
	// InvalidArgument: the request is malformed; nothing was stored. Do not retry.
	InvalidArgument Code = "INVALID_ARGUMENT"
	// InvalidTime: a due time further in the past than the grace, or too far ahead.
	InvalidTime Code = "INVALID_TIME"
	// NotFound: no such domain, type or task.
	NotFound Code = "NOT_FOUND"
	// AlreadyExists: a live task has this key.
	AlreadyExists Code = "ALREADY_EXISTS"
	// Stale: the attempt is no longer current, or the revision is an old one.
	Stale Code = "STALE"
	// FailedPrecondition: the current state does not allow this.
	FailedPrecondition Code = "FAILED_PRECONDITION"
	// ResourceExhausted: a limit is reached; nothing was stored.
	ResourceExhausted Code = "RESOURCE_EXHAUSTED"
	// Unavailable: it did not happen; safe to retry.
	Unavailable Code = "UNAVAILABLE"
	// Unknown: it may or may not have happened; repeat it, a submit with its request id.
	Unknown Code = "UNKNOWN"
	// PermissionDenied: the caller may not do this.
	PermissionDenied Code = "PERMISSION_DENIED"
	// Unimplemented: the verb is of a later version, and this engine does not know it; nothing happened.
	Unimplemented Code = "UNIMPLEMENTED"
	// Internal: a defect of the engine.
	Internal Code = "INTERNAL"
)

var codes = map[Code]bool{
	InvalidArgument: true, InvalidTime: true, NotFound: true, AlreadyExists: true, Stale: true,
	FailedPrecondition: true, ResourceExhausted: true, Unavailable: true, Unknown: true,
	PermissionDenied: true, Unimplemented: true, Internal: true,
}

// Codes are all of them, sorted.
func Codes() []Code { return slices.Sorted(maps.Keys(codes)) }

// Known tells whether c is in the closed list.
func (c Code) Known() bool { return codes[c] }

// Retryable tells whether the same request may succeed later and is safe to
// repeat as it is. Unknown is not by itself: a submit must be repeated with its request id.
func (c Code) Retryable() bool { return c == Unavailable || c == ResourceExhausted }
