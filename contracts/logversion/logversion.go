// Package logversion says which formats of stored records this program knows.
//
// Owns: the number of the newest format, and the error for a number that is not known. A record that carries no
// number is of version 1.
//
// Never does: know what changed between two formats, or ask the cluster; package
// catalog does that. A cluster writes one format at a time: one that
// every program in it knows, raised by `yard upgrade finalize`.
//
// On failure: an unknown format is an *UnknownError. An owner that meets one stops, hands its
// partition over and raises an alarm; it skips nothing (I13).
package logversion

import (
	"fmt"
	"strconv"
	"sync"
)

// newest is the newest format that this program reads and writes. A build raises
// it, for tests of programs of two versions side by side:
//
//	go build -ldflags "-X github.com/yardmaster-io/yardmaster/contracts/logversion.newest=2"
var newest = "1"

// Newest is the newest format that this program reads and writes. It reads all from 1 up to it.
var Newest = sync.OnceValue(func() uint32 {
	v, err := parse(newest)
	if err != nil {
		panic(err) // the build is wrong, so nothing may start
	}
	return v
})

func parse(text string) (uint32, error) {
	v, err := strconv.ParseUint(text, 10, 32)
	if err != nil || v == 0 {
		return 0, fmt.Errorf("logversion: this program was built with the log version %q, want a number from 1 on", text)
	}
	return uint32(v), nil
}

// Check returns an *UnknownError if this program cannot read a record that
// carries v.
func Check(v uint32) error {
	if v > Newest() {
		return &UnknownError{Version: v, Newest: Newest()}
	}
	return nil
}

// UnknownError is a record, or a cluster, of a format that this program does not
// know.
type UnknownError struct {
	// Version is the format met, Newest the newest that is known.
	Version, Newest uint32
}

// Error says what to do.
func (e *UnknownError) Error() string {
	return fmt.Sprintf("log version %d is not known to this program, which reads up to %d: run a newer version of it", e.Version, e.Newest)
}
