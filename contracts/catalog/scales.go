package catalog

import (
	"context"
	"errors"
	"strconv"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
)

// Scale is over how many partitions the engine itself has spread a tasklist. It is a record of its own, so that a put of the settings
// keeps it. The zero Scale is none.
type Scale struct {
	Partitions int
	// Revision changes with every put.
	Revision int64
}

// Scaled is a tasklist that has a scale.
type Scaled struct {
	Domain, Tasklist string
	Scale
}

// Partitions is over how many partitions a tasklist is spread, 1..ids.PartitionsMax, by its settings, which may be nil, and its scale:
// as many as the settings say, or, where these have a partitions_max, as the scale says within both.
func Partitions(l *yardv1.Tasklist, s Scale) int {
	least, most := PartitionsBetween(l)
	return min(max(s.Partitions, least), most)
}

// PartitionsBetween is the least and the most partitions that a tasklist with these settings may be spread over; both are the same where
// the engine does not set their number.
func PartitionsBetween(l *yardv1.Tasklist) (least, most int) {
	least = min(max(int(l.GetPartitions()), 1), ids.PartitionsMax)
	return least, min(max(int(l.GetPartitionsMax()), least), ids.PartitionsMax)
}

// Partitions is over how many partitions a tasklist is spread now.
func (c *Catalog) Partitions(domain, tasklist string) int {
	s := c.now.Load()
	return Partitions(s.tasklists[domain][tasklist], s.scales[domain][tasklist])
}

// Scale returns the scale of a tasklist; of one without any, the zero Scale.
func (c *Catalog) Scale(domain, tasklist string) Scale {
	return c.now.Load().scales[domain][tasklist]
}

// Scales are those of all domains, in no order.
func (c *Catalog) Scales() (all []Scaled) {
	for domain, scales := range c.now.Load().scales {
		for name, s := range scales {
			all = append(all, Scaled{domain, name, s})
		}
	}
	return all
}

func (s *state) takeScale(domain, name string, e jetstream.KeyValueEntry, gone bool) bool {
	n, err := strconv.Atoi(string(e.Value()))
	if !gone && err != nil {
		return false
	}
	set(s.scales, domain, name, Scale{Partitions: n, Revision: int64(e.Revision())}, gone)
	return true
}

// PutScale stores over how many partitions the engine spreads a tasklist from now on, in place of one revision, or where there is none
// if that is 0. Its error is a *fault.Error: STALE where another one is stored; UNAVAILABLE where it may not have been stored.
func PutScale(ctx context.Context, kv jetstream.KeyValue, domain, tasklist string, partitions int, replaces int64) error {
	key, value := topology.ScaleKey(domain, tasklist), []byte(strconv.Itoa(partitions))
	var err error
	if replaces == 0 {
		_, err = kv.Create(ctx, key, value)
	} else {
		_, err = kv.Update(ctx, key, value, uint64(replaces))
	}
	switch {
	case errors.Is(err, jetstream.ErrKeyExists), errors.Is(err, jetstream.ErrKeyRevisionMismatch):
		return fault.New(fault.Stale, "another revision of %s is stored, not %d", key, replaces)
	case err != nil:
		return fault.New(fault.Unavailable, "store %s: %v", key, err)
	}
	return nil
}

// DeleteScale deletes this revision of the scale of a tasklist. Its error is as that of PutScale.
func DeleteScale(ctx context.Context, kv jetstream.KeyValue, domain, tasklist string, revision int64) error {
	return remove(ctx, kv, topology.ScaleKey(domain, tasklist), revision, 0)
}

// deleteScaleOf deletes the scale of a tasklist that has no settings any more. If that fails frontends delete it later, as they do
// where another one wrote it meanwhile.
func deleteScaleOf(ctx context.Context, kv jetstream.KeyValue, domain, tasklist string) {
	if e, err := kv.Get(ctx, topology.ScaleKey(domain, tasklist)); err == nil {
		_ = DeleteScale(ctx, kv, domain, tasklist, int64(e.Revision()))
	}
}
