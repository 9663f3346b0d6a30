package yard

import (
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// Why a handler's context ended, from context.Cause; otherwise the cause is context.DeadlineExceeded, at the attempt's deadline.
var (
	// ErrCancelled: the task was cancelled. It also matches the TaskError of a cancelled task.
	ErrCancelled = errors.New("the task was cancelled")
	// ErrLostAttempt: the engine has given the task to another attempt; the result of the handler is ignored.
	ErrLostAttempt = errors.New("the attempt is no longer current")
	// ErrStopping: the worker stops and DrainTimeout is over. An attempt that returns an error now is handed back, and does not count as failed.
	ErrStopping = errors.New("the worker is stopping")
)

// Error types that the SDK itself reports.
const (
	// TypePanic is the error type of a handler that panicked.
	TypePanic = "panic"
	// TypeBadInput is the error type of a payload that does not decode into the handler's input type; such a failure is not retried.
	TypeBadInput = "bad_input"
	// TypeBadResult is the error type of a result that cannot be stored: it does
	// not encode, or is larger than 256 KiB; such a failure is not retried.
	TypeBadResult = "bad_result"
	// TypeCancelled is the error type of an attempt that ended because its task was cancelled.
	TypeCancelled = "cancelled"
	// typeOther is that of an error without a telling Go type.
	typeOther = "error"
)

// delayMax is the longest delay the engine takes for a retry.
const delayMax = 30 * 24 * time.Hour

// stackLinesMax is how much of a panic's stack is reported.
const stackLinesMax = 24

type nonRetryable struct{ error }

func (e nonRetryable) Unwrap() error { return e.error }

// NonRetryable wraps an error so that the task becomes a dead letter at once, even inside RetryAfter. Nil stays nil.
func NonRetryable(err error) error {
	if err == nil {
		return nil
	}
	return nonRetryable{err}
}

type retryAfter struct {
	error
	delay time.Duration
}

func (e retryAfter) Unwrap() error { return e.error }

// RetryAfter wraps an error so that the next attempt comes after d, 1 ms to 30
// days, instead of what the retry policy says. The failure is counted. Nil stays nil.
func RetryAfter(err error, d time.Duration) error {
	if err == nil {
		return nil
	}
	return retryAfter{err, d}
}

// typed is an error with a type of its own choice for programs to match.
type typed interface{ ErrorType() string }

type typedError struct {
	error
	name string
}

func (e typedError) Unwrap() error     { return e.error }
func (e typedError) ErrorType() string { return e.name }

// handlerPanic is what a panic of a handler becomes.
type handlerPanic struct {
	value any
	stack []byte
}

func (e *handlerPanic) Error() string {
	return fmt.Sprintf("panic: %v\n%s", e.value, panicSite(e.stack))
}
func (e *handlerPanic) ErrorType() string { return TypePanic }

func newHandlerPanic(value any) *handlerPanic { return &handlerPanic{value, debug.Stack()} }

// panicSite is the stack from the frame that panicked on, without the frames of recovering, cut to its first lines.
func panicSite(stack []byte) string {
	lines := strings.Split(strings.TrimSpace(string(stack)), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "panic(") && i+2 <= len(lines) {
			lines = lines[i+2:] // a frame is two lines
			break
		}
	}
	return strings.Join(lines[:min(len(lines), stackLinesMax)], "\n")
}

// failureOf reports a handler's error.
func failureOf(a *Attempt, err error) *yardv1.Failure {
	f := &yardv1.Failure{
		TaskId: a.TaskID, Token: a.token,
		Message:   clip(err.Error(), messageBytesMax),
		ErrorType: clip(ErrorType(err), errorTypeBytesMax),
	}
	var final nonRetryable
	f.NonRetryable = errors.As(err, &final)
	var later retryAfter
	var put snoozed
	switch {
	case f.NonRetryable:
	case errors.As(err, &later):
		f.DelayMs = delayMS(later.delay)
	case errors.As(err, &put):
		f.Snooze, f.DelayMs, f.ErrorType = true, delayMS(put.delay), ""
	}
	return f
}

// handBack gives an attempt back without a failure being counted.
func handBack(a *Attempt, why string) *yardv1.Failure {
	return &yardv1.Failure{TaskId: a.TaskID, Token: a.token, Message: why, NotStarted: true}
}

// ErrorType is the error type that a failure with err is reported as: what the error says of itself by an ErrorType method, else
// the name of the first Go type in its chain that says more than "an error". It is cut to 128 bytes when it is reported.
func ErrorType(err error) string {
	var t typed
	if errors.As(err, &t) {
		return t.ErrorType()
	}
	for ; err != nil; err = errors.Unwrap(err) {
		rt := reflect.TypeOf(err)
		elem := rt
		if rt.Kind() == reflect.Pointer {
			elem = rt.Elem()
		}
		switch elem.PkgPath() {
		case "errors", "fmt", reflect.TypeFor[nonRetryable]().PkgPath():
			continue
		}
		return strings.TrimPrefix(rt.String(), "*")
	}
	return typeOther
}

// clip makes s valid UTF-8 of at most n bytes.
func clip(s string, n int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
