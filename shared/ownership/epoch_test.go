package ownership

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

const epochKey = "matching.0"

// TestEachTermHasItsOwnNumber however many take the epoch at once.
func TestEachTermHasItsOwnNumber(t *testing.T) {
	const owners = 8
	kv := bucket(t, server(t).Connect(t))
	var mu sync.Mutex
	var numbers []uint64
	var all sync.WaitGroup
	for range owners {
		all.Go(func() {
			term, err := TakeEpoch(t.Context(), kv, epochKey, 0)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			numbers = append(numbers, term.Number())
		})
	}
	all.Wait()
	slices.Sort(numbers)
	testkit.Equal(t, "numbers", numbers, []uint64{1, 2, 3, 4, 5, 6, 7, 8})
}

// TestR42OnlyTheNewestOwnerOpens: an owner that was overtaken is informed so, and what is open
// never goes back.
func TestR42OnlyTheNewestOwnerOpens(t *testing.T) {
	kv := bucket(t, server(t).Connect(t))
	take := func() *Term {
		t.Helper()
		term, err := TakeEpoch(t.Context(), kv, epochKey, 0)
		testkit.NoError(t, err)
		return term
	}
	want := func(what string, want Epoch) {
		t.Helper()
		if now, _, err := readEpoch(t.Context(), kv, epochKey); err != nil || now != want {
			t.Errorf("%s: %+v, %v", what, now, err)
		}
	}
	first := take()
	want("one has taken it", Epoch{Taken: 1})
	testkit.NoError(t, first.Open(t.Context()))
	want("and is ready", Epoch{Taken: 1, Open: 1})
	hung, next := take(), take()
	if err := hung.Open(t.Context()); !errors.Is(err, ErrSuperseded) {
		t.Errorf("a hung owner opens: %v", err)
	}
	want("no one is ready since", Epoch{Taken: 3, Open: 1})
	testkit.Check(t, next.Open(t.Context()))
	next.revision-- // as if the acknowledgement had been lost
	testkit.Check(t, next.Open(t.Context()))
	want("the newest is ready", Epoch{Taken: 3, Open: 3})
	if err := first.Open(t.Context()); !errors.Is(err, ErrSuperseded) {
		t.Errorf("the first one opens again: %v", err)
	}
}

// TestR42AnOwnerThatWasOvertakenStops.
func TestR42AnOwnerThatWasOvertakenStops(t *testing.T) {
	kv := bucket(t, server(t).Connect(t))
	term, err := TakeEpoch(t.Context(), kv, epochKey, 0)
	testkit.NoError(t, err)
	held, stop := term.Hold(t.Context(), slog.New(slog.DiscardHandler))
	defer stop()
	testkit.NoError(t, term.Open(t.Context()))
	if held.Err() != nil {
		t.Error("it was not overtaken")
	}
	testkit.NoError(t, testkit.Err(TakeEpoch(t.Context(), kv, epochKey, 0)))
	<-held.Done()
	if err := context.Cause(held); !errors.Is(err, ErrSuperseded) {
		t.Errorf("it ended since %v", err)
	}
}

// TestEpochsAreFollowed from what is there, over a restart of the server, and up only.
func TestEpochsAreFollowed(t *testing.T) {
	testkit.Slow(t, "waits until a node is believed to be away")
	srv := server(t)
	kv := bucket(t, srv.Connect(t))
	testkit.NoError(t, testkit.Err(TakeEpoch(t.Context(), kv, "matching.1", 0)))
	var mu sync.Mutex
	heard := map[int]Epoch{}
	e := &Epochs{
		KV: bucket(t, srv.Connect(t)), Keys: []string{"matching.0", "matching.1"}, Log: slog.New(slog.DiscardHandler),
		Rose: func(i int, now Epoch) {
			mu.Lock()
			defer mu.Unlock()
			if now.Taken < heard[i].Taken || now.Open < heard[i].Open || now == heard[i] {
				t.Errorf("key %d: %+v after %+v", i, now, heard[i])
			}
			heard[i] = now
		},
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- e.Run(ctx) }()
	want := func(want map[int]Epoch) {
		t.Helper()
		testkit.Eventually(t, soon, func() error {
			mu.Lock()
			defer mu.Unlock()
			for i, one := range want {
				if heard[i] != one {
					return fmt.Errorf("heard %v, want %v", heard, want)
				}
			}
			return nil
		})
	}
	raise := func(key string) {
		t.Helper()
		testkit.Eventually(t, soon, func() error { // the server may be back only just now
			term, err := TakeEpoch(t.Context(), kv, key, 0)
			if err == nil {
				err = term.Open(t.Context())
			}
			return err
		})
	}
	want(map[int]Epoch{1: {Taken: 1}})
	raise("matching.0")
	want(map[int]Epoch{0: {1, 1}, 1: {Taken: 1}})
	srv.Stop()
	srv.Restart(t)
	raise("matching.1")
	testkit.Eventually(t, soon, func() error {
		now, _, err := readEpoch(t.Context(), kv, "matching.1")
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if now.Open < 2 || heard[1] != now {
			return fmt.Errorf("heard %v, it is %v", heard, now)
		}
		return nil
	})
	cancel()
	testkit.Check(t, <-done)
}

// TestAnAuditHearsWhatAWatchMissed.
func TestAnAuditHearsWhatAWatchMissed(t *testing.T) {
	kv := bucket(t, server(t).Connect(t))
	var heard []Epoch
	e := &Epochs{KV: kv, Keys: []string{epochKey}, last: make([]Epoch, 1), Rose: func(_ int, now Epoch) { heard = append(heard, now) }}
	testkit.Check(t, e.audit(t.Context()))
	testkit.NoError(t, testkit.Err(TakeEpoch(t.Context(), kv, epochKey, 0)))
	if err := e.audit(t.Context()); !errors.Is(err, errDeaf) {
		t.Errorf("it does not say that it was deaf: %v", err)
	}
	if err := e.audit(t.Context()); err != nil || !slices.Equal(heard, []Epoch{{Taken: 1}}) {
		t.Errorf("heard %v, %v", heard, err)
	}
}
