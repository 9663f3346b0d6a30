package catalog

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/catalog/catalogtest"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/internal/checktest"
)

func drains(id, reason string) func(map[string]*yardv1.WorkerDrain) (bool, error) {
	return func(all map[string]*yardv1.WorkerDrain) (bool, error) {
		all[id] = &yardv1.WorkerDrain{Reason: reason, SinceMs: 7}
		return true, nil
	}
}

func resumes(id string) func(map[string]*yardv1.WorkerDrain) (bool, error) {
	return func(all map[string]*yardv1.WorkerDrain) (bool, error) {
		delete(all, id)
		return true, nil
	}
}

// Drained workers come and go, each as a change of its domain.
func TestACatalogFollowsDrainedWorkers(t *testing.T) {
	fill := func(b *catalogtest.KV) {
		b.Store(Workers.Key("", "shop"), `{"workers":[{"worker_id":"w0"},{"worker_id":"w1","drain":{"by":"ann","since_ms":5}}]}`)
		b.Store(Workers.Key("", "broken"), `{`)
	}
	watching(t, fill, func(w *watched) {
		if d := w.DrainedWorker("shop", "w1"); d.GetBy() != "ann" || w.DrainedWorker("shop", "w0") != nil || w.DrainedWorker("bank", "w1") != nil {
			t.Errorf("%v", d)
		}
		change := func(domain string, f func(map[string]*yardv1.WorkerDrain) (bool, error)) {
			t.Helper()
			checktest.NoError(t, ChangeDrainedWorkers(t.Context(), w.bucket, domain, f))
		}
		change("shop", drains("w2", "why"))
		change("bank", drains("w1", "another"))
		w.reported("two drains", "shop", "bank")
		if w.DrainedWorker("shop", "w2").GetReason() != "why" || w.DrainedWorker("shop", "w1").GetBy() != "ann" || w.DrainedWorker("bank", "w1").GetReason() != "another" {
			t.Error("one is missing")
		}
		change("bank", resumes("w1"))
		change("bank", resumes("w1")) // nothing is left
		w.reported("a resume", "bank", "bank")
		change("bank", drains("w3", "")) // behind a deleted key
		w.reported("a drain", "bank")
		if bank, shop := Workers.Of(w.Catalog, "", "bank"), Workers.Of(w.Catalog, "", "shop"); len(bank.Workers) != 1 || w.DrainedWorker("bank", "w3") == nil || len(shop.Workers) != 3 {
			t.Errorf("%v %v", bank, shop)
		}
		checktest.Check(t, ChangeDrainedWorkers(t.Context(), w.bucket, "bank", func(map[string]*yardv1.WorkerDrain) (bool, error) { return false, nil }))
		w.reported("no change")
	})
}

// busyBucket has another one write between each read and the write that follows.
type busyBucket struct {
	*catalogtest.KV
	times int
}

func (b *busyBucket) Get(ctx context.Context, key string) (jetstream.KeyValueEntry, error) {
	e, err := b.KV.Get(ctx, key)
	if b.times > 0 {
		b.times--
		value := fmt.Sprintf(`{"workers":[{"worker_id":"other-%d","drain":{}}]}`, b.times)
		b.Store(key, value)
	}
	return e, err
}

func TestChangesOfDrainedWorkersMeet(t *testing.T) {
	b := &busyBucket{catalogtest.New(), 3}
	checktest.NoError(t, ChangeDrainedWorkers(t.Context(), b, "shop", drains("w1", "")))
	var stored []string
	see := func(all map[string]*yardv1.WorkerDrain) (bool, error) {
		for id := range all {
			stored = append(stored, id)
		}
		return false, nil
	}
	if err := ChangeDrainedWorkers(t.Context(), b, "shop", see); err != nil || len(stored) != 2 {
		t.Errorf("stored %v, %v", stored, err)
	}
	b.times = 1000
	refused(t, "while others change it all the time", ChangeDrainedWorkers(t.Context(), b, "shop", drains("w1", "")), fault.Unavailable, "")
	b.times = 0
	mine := errors.New("mine")
	if err := ChangeDrainedWorkers(t.Context(), b, "shop", func(map[string]*yardv1.WorkerDrain) (bool, error) { return true, mine }); err != mine {
		t.Errorf("got %v", err)
	}
	refused(t, "a domain that is no key", ChangeDrainedWorkers(t.Context(), b, "a.b", drains("w1", "")), fault.InvalidArgument, "/domain")
	refused(t, "more than a message holds", ChangeDrainedWorkers(t.Context(), b, "shop", drains("w1", strings.Repeat("x", workersBytesMax))), fault.FailedPrecondition, "/reason")
}
