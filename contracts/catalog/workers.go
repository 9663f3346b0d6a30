package catalog

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// workersBytesMax bounds what is stored of the drained workers of a domain: it is one message.
const workersBytesMax = 512 << 10

// workersTries is how often a change of the drained workers of a domain is tried, while others change them.
const workersTries = 10

// DrainedWorker returns the drain of a worker, or nil. The result is read-only.
func (c *Catalog) DrainedWorker(domain, workerID string) *yardv1.WorkerDrain {
	workers := Workers.Of(c, "", domain).GetWorkers() // sorted
	i, found := slices.BinarySearchFunc(workers, workerID, func(w *rpcv1.DrainedWorker, id string) int { return strings.Compare(w.WorkerId, id) })
	if !found {
		return nil
	}
	return workers[i].Drain
}

// ChangeDrainedWorkers changes which workers of a domain are drained. Change gets the drains that are stored, by worker id, changes them and reports
// whether it did. It is called again if somebody else stored others meanwhile. If it returns an error, nothing is stored, and the error is returned.
// Other errors are *fault.Error: UNAVAILABLE if the change may not have been stored, and a repetition does no harm; FAILED_PRECONDITION if it is too large.
func ChangeDrainedWorkers(ctx context.Context, kv Bucket, domain string, change func(all map[string]*yardv1.WorkerDrain) (changed bool, err error)) error {
	if err := Workers.check("", domain); err != nil {
		return fault.At(fault.InvalidArgument, "/domain", "%v", err)
	}
	for range workersTries {
		m, revision, err := Workers.get(ctx, kv, "", domain)
		if err != nil && fault.CodeOf(err) != fault.NotFound {
			return err
		}
		all := map[string]*yardv1.WorkerDrain{}
		for _, w := range m.GetWorkers() {
			all[w.WorkerId] = w.Drain
		}
		changed, err := change(all)
		if err != nil || !changed {
			return err
		}
		if err = storeWorkers(ctx, kv, domain, all, int64(revision)); fault.CodeOf(err) != fault.Stale {
			return err
		}
	}
	return fault.New(fault.Unavailable, "others change the drained workers of domain %s all the time", domain)
}

// storeWorkers stores what is left, in place of a revision; 0 = there is none.
func storeWorkers(ctx context.Context, kv Bucket, domain string, all map[string]*yardv1.WorkerDrain, revision int64) error {
	m := &rpcv1.DrainedWorkers{}
	for _, id := range slices.Sorted(maps.Keys(all)) {
		m.Workers = append(m.Workers, &rpcv1.DrainedWorker{WorkerId: id, Drain: all[id]})
	}
	value, err := codec.Marshal(codec.JSON, m)
	switch {
	case err != nil:
		return err
	case len(value) > workersBytesMax:
		return fault.At(fault.FailedPrecondition, "/reason", "the drained workers of the domain take %d bytes, more than %d: give shorter reasons, or resume some", len(value), workersBytesMax)
	case len(all) == 0 && revision != 0:
		return remove(ctx, kv, Workers.Key("", domain), revision, 0)
	}
	return Workers.Swap(ctx, kv, "", domain, m, revision)
}
