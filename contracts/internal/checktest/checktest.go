// Package checktest has the checks that the tests of contracts share.
//
// Owns: how a test reports an error or another value. Never does: anything outside of tests; testkit in shared has the same for the other modules.
// On failure: NoError and MustEqual end the test, the others go on.
package checktest

import (
	"reflect"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
)

// reporter is what all kinds of tests have in common.
type reporter interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// NoError ends the test if something failed.
func NoError(tb reporter, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatalf("%v", err)
	}
}

// Check reports that something failed, and goes on.
func Check(tb reporter, err error) {
	tb.Helper()
	if err != nil {
		tb.Errorf("%v", err)
	}
}

// Err is the error of a call whose result no one needs.
func Err[T any](_ T, err error) error { return err }

// Code reports that a call failed for another reason than it should, or succeeded, and goes on.
func Code(tb reporter, what string, err error, want fault.Code) {
	tb.Helper()
	if fault.CodeOf(err) != want {
		tb.Errorf("%s: %v, want %s", what, err, want)
	}
}

// Equal reports what has another value than it should, and goes on.
func Equal[T any](tb reporter, what string, got, want T) {
	tb.Helper()
	if !same(got, want) {
		tb.Errorf("%s: %+v, want %+v", what, got, want)
	}
}

// same compares with ==, and slices and maps by what they hold.
func same(got, want any) bool {
	if v := reflect.ValueOf(got); !v.IsValid() || v.Comparable() {
		return got == want
	}
	return reflect.DeepEqual(got, want)
}
