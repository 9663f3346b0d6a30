package partition

import (
	"context"
	"errors"
	"testing"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func TestARoomIsBoundedAndLeavesOthersTheirPart(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	r := newRoom(64, 64)
	var leave []func()
	enter := func(domain string) error {
		out, err := r.enter(t.Context(), domain)
		if err == nil {
			leave = append(leave, out)
		}
		return err
	}
	for enter("flood") == nil {
	}
	testkit.Equal(t, "one has of 64 places", len(leave), 48)
	if err := enter("flood"); !errors.Is(err, ErrReaderBusy) {
		t.Errorf("one that has most of the room: %v", err)
	}
	if err := enter("shop"); err != nil {
		t.Errorf("another: %v", err)
	}
	for _, out := range leave {
		out()
	}
	for n := range 48 {
		if !r.places.Enter("flood") {
			t.Fatalf("all have left, and there is no place for caller %d", n)
		}
	}
	testkit.Equal(t, "all have left, and slots are taken", len(r.slots), 0)
	r = newRoom(1, 2)
	out, err := r.enter(t.Context(), "a")
	testkit.NoError(t, err)
	if _, err := r.enter(ended, "b"); !errors.Is(err, context.Canceled) {
		t.Errorf("no slot, and no time to wait: %v", err)
	}
	waiting := make(chan error)
	go func() {
		leave, err := r.enter(t.Context(), "b")
		if err == nil {
			leave()
		}
		waiting <- err
	}()
	out()
	if err := <-waiting; err != nil || len(r.slots) != 0 {
		t.Errorf("it waited for a slot: %v; %d slots are taken", err, len(r.slots))
	}
}
