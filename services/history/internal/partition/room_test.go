package partition

import (
	"context"
	"errors"
	"testing"
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
	for n := range 48 {
		if err := enter("flood"); err != nil {
			t.Fatalf("caller %d: %v", n, err)
		}
	}
	if err := enter("flood"); !errors.Is(err, ErrReaderBusy) {
		t.Errorf("one that has most of the room: %v", err)
	}
	for _, domain := range []string{"a", "b", "c", "d"} {
		for n := range 4 {
			if err := enter(domain); err != nil {
				t.Errorf("caller %d of %s: %v", n, domain, err)
			}
		}
	}
	if err := enter("e"); !errors.Is(err, ErrReaderBusy) {
		t.Errorf("a full room: %v", err)
	}
	for _, out := range leave {
		out()
	}
	if r.all != 0 || len(r.of) != 0 || len(r.slots) != 0 {
		t.Errorf("all have left, and it has %d callers of %v", r.all, r.of)
	}
	r = newRoom(1, 2)
	out, err := r.enter(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
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
	if err := <-waiting; err != nil || r.all != 0 {
		t.Errorf("it waited for a slot: %v; %d callers are left", err, r.all)
	}
}
