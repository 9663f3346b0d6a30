package natslog

import (
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go"
)

// A failed append wraps exactly one of ErrNotStored, ErrOutcomeUnknown and
// ErrDuplicate.
var (
	// ErrNotStored: it is certain that nothing was stored, nor will be.
	ErrNotStored = errors.New("not stored")
	// ErrWrongLast: not stored, because an expected last sequence was not the
	// last one. It wraps ErrNotStored.
	ErrWrongLast = fmt.Errorf("%w: wrong last sequence", ErrNotStored)
	// ErrFull: not stored, since there is no room: of the server's storage, the account's, or the
	// stream's own. It wraps ErrNotStored.
	ErrFull = fmt.Errorf("%w: the storage is full", ErrNotStored)
	// ErrIncomplete: AppendAtomic was refused because the server did not take one of its
	// messages, but the last. It does not tell which, nor why; appending fewer at a time
	// does. It wraps ErrNotStored.
	ErrIncomplete = fmt.Errorf("%w: a message of the batch is missing", ErrNotStored)
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
	codeAtomicIncomplete   = 10176
	codeAtomicHasDuplicate = 10201
	codeStreamNotFound     = 10059
	codeAccountFull        = 10002
	codeServerFull         = 10023
	codeStorageFull        = 10047
)

// Error codes of appends that are refused however often they are repeated: for what
// the message is, and for how the stream is set up or the append is made.
var (
	badMessageCodes = []int{
		10054, // the message is larger than the stream takes
		10097, // its header is larger than the server takes
		10165, // its TTL is malformed
	}
	permanentCodes = []int{
		10060, // it is expected in another stream
		10166, // the stream allows no TTLs
		10174, // the stream allows no atomic batches
		10177, // a header that no atomic batch may have
		10199, // the atomic batch has too many messages
	}
)

// descriptionTooLarge is how the server's store refuses a message of any size it
// cannot file; it has no code of its own.
const descriptionTooLarge = "message too large"

// Permanent tells whether an append failed forever: the same message can never be
// stored, so repeating it is pointless and it belongs into quarantine. All other
// errors pass (no one answers, a time-out, a full stream, no quorum), and so does
// ErrWrongLast, which is an answer and no failure.
func Permanent(err error) bool {
	if BadMessage(err) || errors.Is(err, nats.ErrHeadersNotSupported) {
		return true
	}
	var api *apiError
	return errors.As(err, &api) && slices.Contains(permanentCodes, api.ErrCode)
}

// BadMessage tells whether an append failed forever because of the message alone: its
// size, subject or header. Of several messages, the others can be stored without it. What
// the stream refuses of any message (it is sealed, allows no TTLs or no batches) is not
// among it: there the settings must be mended, and the message stays as good as it was.
func BadMessage(err error) bool {
	if isOneOf(err, nats.ErrMaxPayload, nats.ErrBadSubject, nats.ErrBadHeaderMsg) {
		return true
	}
	var api *apiError
	if !errors.As(err, &api) {
		return false
	}
	return slices.Contains(badMessageCodes, api.ErrCode) || api.ErrCode == codeStoreFailed && api.Description == descriptionTooLarge
}

func isOneOf(err error, all ...error) bool {
	return slices.ContainsFunc(all, func(one error) bool { return errors.Is(err, one) })
}

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
	case codeAccountFull, codeServerFull, codeStorageFull:
		return ErrFull
	case codeAtomicIncomplete:
		return ErrIncomplete
	case codeAtomicHasDuplicate:
		return ErrDuplicate
	case codeDuplicateInFlight:
		return ErrOutcomeUnknown // the first try is still being decided
	case codeStoreFailed:
		switch e.Description {
		case "maximum messages exceeded", "maximum bytes exceeded":
			return ErrFull
		case "maximum messages per subject exceeded", descriptionTooLarge:
			return ErrNotStored
		}
		return ErrOutcomeUnknown // the disk failed somewhere in the middle
	}
	return ErrNotStored
}
