package yard

import "github.com/yardmaster-io/yardmaster/contracts/fault"

// The errors of the engine by their code, for errors.Is. The *fault.Error (errors.As) has more: the field at
// fault, details, how long to wait before a retry.
var (
	// ErrInvalidArgument: the request is malformed; nothing was stored.
	ErrInvalidArgument error = &fault.Error{Code: fault.InvalidArgument, Message: "the request is malformed"}
	// ErrInvalidTime: a due time is too far in the past or in the future; nothing was stored.
	ErrInvalidTime error = &fault.Error{Code: fault.InvalidTime, Message: "the time is out of range"}
	// ErrNotFound: there is no such domain, type or task.
	ErrNotFound error = &fault.Error{Code: fault.NotFound, Message: "not found"}
	// ErrStale: the attempt is no longer current, or another revision is stored.
	ErrStale error = &fault.Error{Code: fault.Stale, Message: "no longer current"}
	// ErrFailedPrecondition: the current state does not allow this.
	ErrFailedPrecondition error = &fault.Error{Code: fault.FailedPrecondition, Message: "its state does not allow this"}
	// ErrResourceExhausted: a limit is full; nothing was stored. The client has tried again until its context ended.
	ErrResourceExhausted error = &fault.Error{Code: fault.ResourceExhausted, Message: "a limit is full"}
	// ErrUnavailable: it did not happen. The client has tried again until its context ended.
	ErrUnavailable error = &fault.Error{Code: fault.Unavailable, Message: "unavailable"}
	// ErrUnknown: it may or may not have happened.
	ErrUnknown error = &fault.Error{Code: fault.Unknown, Message: "it is not known whether it happened"}
	// ErrPermissionDenied: the login may not do this.
	ErrPermissionDenied error = &fault.Error{Code: fault.PermissionDenied, Message: "permission denied"}
	// ErrUnimplemented: the engine does not know this call.
	ErrUnimplemented error = &fault.Error{Code: fault.Unimplemented, Message: "the engine does not know this call"}
	// ErrInternal: a defect of the engine.
	ErrInternal error = &fault.Error{Code: fault.Internal, Message: "a defect of the engine"}
)

// final reports whether the outcome stays unknown: a repeat of the request, by its id, does not report it.
func final(e *fault.Error) bool { return e.Code == fault.Unknown && e.Detail[fault.DetailFinal] != "" }
