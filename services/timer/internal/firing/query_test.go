package firing_test

import (
	"context"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/firing"
)

// patientStore finds its end for callers that have gone, too.
type patientStore struct{ firing.Store }

func (s patientStore) Last(ctx context.Context) (uint64, error) {
	return s.Store.Last(context.WithoutCancel(ctx))
}

// TestWhoWaitsNoLongerReadsNoAnswer: the loop answers questions whose askers have gone, while these
// go on. The race detector says whether they read what the loop writes.
func TestWhoWaitsNoLongerReadsNoAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.own(func(d *firing.Deps) { d.Store = patientStore{d.Store} })
	id := ids.TaskID(w.park(1, time.Now().Add(time.Hour))[0].Id)
	waits(t, r, 1)
	gone, leave := context.WithCancel(t.Context())
	leave()
	for range 200 {
		if n, err := r.Waiting(gone, "shop", "mail"); err != nil && n != 0 || err == nil && n != 1 {
			t.Errorf("%d tasks wait: %v", n, err)
		}
		if at, err := r.Locate(gone, id, "shop"); err != nil && (at.LogSeq > 0 || at.Record != nil) || err == nil && at.Record == nil {
			t.Errorf("%+v: %v", at, err)
		}
	}
}
