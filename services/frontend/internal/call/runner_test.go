package call

import (
	"log/slog"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// woken reports whether a runner is woken now.
func woken(r *Runner) bool {
	select {
	case <-r.Woken():
		return true
	default:
		return false
	}
}

// A runner rests while no request is open. The next request wakes it, once; one that comes while it does not rest does not.
func TestARequestWakesARunnerThatRests(t *testing.T) {
	r := NewRunner(Bounds{Requests: 10, Bytes: 100, Queries: 10, Waits: 10}, catalog.New(func(string) {}), slog.New(slog.DiscardHandler))
	admit := func() Place {
		p, err := r.Admit("shop", 1)
		testkit.NoError(t, err)
		return p
	}
	first := admit()
	testkit.Equal(t, "woken though it did not rest", woken(r), false)
	testkit.Equal(t, "rests beside an open request", r.Rest(), false)
	second := admit()
	testkit.Equal(t, "woken though it could not rest", woken(r), false)
	r.Release(first)
	testkit.Equal(t, "rests beside the other one", r.Rest(), false)
	r.Release(second)
	for range 2 {
		testkit.Equal(t, "rests", r.Rest(), true)
		testkit.Equal(t, "rests still", r.Rest(), true)
		testkit.Equal(t, "woken though nothing came", woken(r), false)
		first = admit()
		testkit.Equal(t, "woken", woken(r), true)
		second = admit()
		testkit.Equal(t, "woken again", woken(r), false)
		r.Release(first)
		r.Release(second)
	}
	testkit.Equal(t, "rests", r.Rest(), true)
	if _, err := r.Admit("shop", 1000); err == nil {
		t.Error("a request that is too large was admitted")
	}
	testkit.Equal(t, "woken by a request that was refused", woken(r), false)
}
