package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
)

// ErrDrainTimeout says that a part did not return in time after it was cancelled.
// Its goroutine is left behind, so the process should end.
var ErrDrainTimeout = errors.New("did not stop")

// PanicError is the error of a part that panicked.
type PanicError struct {
	Value any    // what was panicked with
	Stack []byte // the stack of the panicking goroutine
}

// Error gives the value and the stack.
func (e *PanicError) Error() string {
	return fmt.Sprintf("panic: %v\n\n%s", e.Value, e.Stack)
}

// Unwrap returns the value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// errGoexit is the error of a part that left by runtime.Goexit, as a test's
// FailNow does.
var errGoexit = errors.New("ended by runtime.Goexit")

// runSafely runs a part and makes an error of a panic.
func runSafely(ctx context.Context, r Runner) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return r.Run(ctx)
}
