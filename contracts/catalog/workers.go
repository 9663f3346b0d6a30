package catalog

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
)

// workersBytesMax bounds what is stored of the drained workers of a domain: it is one message.
const workersBytesMax = 512 << 10

// workersTries is how often a change of the drained workers of a domain is tried, while others change them.
const workersTries = 10

// DrainedWorker returns the drain of a worker, or nil. The result is read-only.
func (c *Catalog) DrainedWorker(domain, workerID string) *yardv1.WorkerDrain {
	return c.now.Load().workers[domain][workerID]
}

// DrainedWorkers returns all workers that are drained, or asked to stop, by domain and id, and the revision of the last change. They are read-only.
func (c *Catalog) DrainedWorkers() (all map[string]map[string]*yardv1.WorkerDrain, revision uint64) {
	s := c.now.Load()
	return s.workers, s.workersAt
}

func (s *state) takeWorkers(domain string, e jetstream.KeyValueEntry, gone bool) bool {
	m := &rpcv1.DrainedWorkers{}
	if !gone && codec.Unmarshal(codec.JSON, e.Value(), m) != nil {
		return false
	}
	s.workersAt = max(s.workersAt, e.Revision())
	if len(m.Workers) == 0 {
		delete(s.workers, domain)
		return true
	}
	s.workers[domain] = drainedByID(m)
	return true
}

func drainedByID(m *rpcv1.DrainedWorkers) map[string]*yardv1.WorkerDrain {
	all := make(map[string]*yardv1.WorkerDrain, len(m.Workers))
	for _, w := range m.Workers {
		if w.GetDrain() != nil {
			all[w.WorkerId] = w.Drain
		}
	}
	return all
}

// ChangeDrainedWorkers changes which workers of a domain are drained, as change says. That is called with what is stored, which it changes, and tells whether
// it did; again if another one changed it meanwhile. An error of it is returned as it is, and nothing is stored. Else the error is a *fault.Error: UNAVAILABLE where the
// change may not have been stored, and a repetition does no harm; FAILED_PRECONDITION where it is too large.
func ChangeDrainedWorkers(ctx context.Context, kv jetstream.KeyValue, domain string, change func(all map[string]*yardv1.WorkerDrain) (changed bool, err error)) error {
	if err := ids.CheckName(domain); err != nil {
		return fault.At(fault.InvalidArgument, "/domain", "%v", err)
	}
	key := topology.WorkersKey(domain)
	for range workersTries {
		m := &rpcv1.DrainedWorkers{}
		revision, err := get(ctx, kv, key, m)
		if err != nil && !errors.Is(err, jetstream.ErrKeyNotFound) {
			return err
		}
		all := drainedByID(m)
		changed, err := change(all)
		if err != nil || !changed {
			return err
		}
		err = writeWorkers(ctx, kv, key, all, uint64(revision))
		if !errors.Is(err, jetstream.ErrKeyRevisionMismatch) && !errors.Is(err, jetstream.ErrKeyExists) {
			return err
		}
	}
	return fault.New(fault.Unavailable, "others change the drained workers of domain %s all the time", domain)
}

// writeWorkers stores what is left, in place of a revision; 0 = there is none.
func writeWorkers(ctx context.Context, kv jetstream.KeyValue, key string, all map[string]*yardv1.WorkerDrain, revision uint64) error {
	m := &rpcv1.DrainedWorkers{}
	for _, id := range slices.Sorted(maps.Keys(all)) {
		m.Workers = append(m.Workers, &rpcv1.DrainedWorker{WorkerId: id, Drain: all[id]})
	}
	value, err := codec.Marshal(codec.JSON, m)
	if err != nil {
		return err
	}
	switch {
	case len(value) > workersBytesMax:
		return fault.At(fault.FailedPrecondition, "/reason", "the drained workers of the domain take %d bytes, more than %d: give shorter reasons, or resume some", len(value), workersBytesMax)
	case revision == 0:
		_, err = kv.Create(ctx, key, value)
	case len(all) == 0:
		err = kv.Delete(ctx, key, jetstream.LastRevision(revision))
	default:
		_, err = kv.Update(ctx, key, value, revision)
	}
	if err != nil && !errors.Is(err, jetstream.ErrKeyRevisionMismatch) && !errors.Is(err, jetstream.ErrKeyExists) {
		return fault.New(fault.Unavailable, "store %s: %v", key, err)
	}
	return err
}
