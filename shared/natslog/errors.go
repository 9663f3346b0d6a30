package natslog

import (
	"errors"
	"fmt"
)

// What a failed append wraps: exactly one of ErrNotStored, ErrOutcomeUnknown and
// ErrDuplicate.
var (
	// ErrNotStored: it is certain that nothing was stored, nor will be.
	ErrNotStored = errors.New("not stored")
	// ErrWrongLast: not stored, because an expected last sequence was not the
	// last one. It wraps ErrNotStored.
	ErrWrongLast = fmt.Errorf("%w: wrong last sequence", ErrNotStored)
	// ErrOutcomeUnknown: it may have been stored or not. Repeat it with the same
	// MsgID, within the stream's dedupe window.
	ErrOutcomeUnknown = errors.New("outcome unknown")
	// ErrDuplicate: AppendAtomic was refused because a MsgID of it is in the
	// stream already. To who repeats a batch of unknown outcome it says that the
	// first try was stored, whole.
	ErrDuplicate = errors.New("stored before")
)

// Error codes of the JetStream API that say more than "refused".
const (
	codeMsgNotFound        = 10037
	codeWrongLast          = 10071
	codeStoreFailed        = 10077
	codeDuplicateInFlight  = 10158
	codeWrongLastConstant  = 10164
	codeAtomicHasDuplicate = 10201
	codeStreamNotFound     = 10059
)

// apiError is an error answer of the JetStream API.
type apiError struct {
	Code        int    `json:"code"`
	ErrCode     int    `json:"err_code"`
	Description string `json:"description"`
}

func (e *apiError) Error() string { return fmt.Sprintf("%s (%d)", e.Description, e.ErrCode) }

// class tells which sentinel a refused append belongs to.
func (e *apiError) class() error {
	switch e.ErrCode {
	case codeWrongLast, codeWrongLastConstant:
		return ErrWrongLast
	case codeAtomicHasDuplicate:
		return ErrDuplicate
	case codeDuplicateInFlight:
		return ErrOutcomeUnknown // the first try is still being decided
	case codeStoreFailed:
		switch e.Description {
		case "maximum messages exceeded", "maximum bytes exceeded", "maximum messages per subject exceeded", "message too large":
			return ErrNotStored
		}
		return ErrOutcomeUnknown // the disk failed somewhere in the middle
	}
	return ErrNotStored
}
