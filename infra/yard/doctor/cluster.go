package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/ownership"
	"github.com/yardmaster-io/yardmaster/shared/provision"
	"github.com/yardmaster-io/yardmaster/shared/quarantine"
)

// lookAtStreams compares the settings of streams, and finds what does not belong to the cluster.
func (x *examiner) lookAtStreams(ctx context.Context) ([]Finding, error) {
	differences, unknown, err := provision.Compare(ctx, x.source.js, x.n)
	if err != nil {
		return nil, err
	}
	for _, err := range unknown {
		x.unchecked("%v", err)
	}
	found := differ(differences)
	known := map[string]bool{}
	for _, s := range topology.Streams(x.n) {
		known[s.Name] = true
	}
	for _, b := range topology.Buckets() {
		known[topology.BucketStream(b)] = true
	}
	all, err := x.source.ourStreams(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the streams: %w", err)
	}
	for _, name := range all {
		if !known[name] {
			found = append(found, Finding{Code: StreamOrphan, Where: name, What: fmt.Sprintf("a cluster of %d history partitions and %d matching shards has no such stream", x.n.History, x.n.Matching)})
			continue
		}
		consumers, err := x.source.consumers(ctx, name)
		if err != nil {
			x.unchecked("the consumers of %s: %v", name, err)
			continue
		}
		for _, c := range orphans(consumers) {
			found = append(found, Finding{
				Code: ConsumerOrphan, Where: c.stream + " " + c.name, What: "it stays until it is deleted",
				mend: func(ctx context.Context) error {
					err := x.source.js.DeleteConsumer(ctx, c.stream, c.name)
					if errors.Is(err, jetstream.ErrConsumerNotFound) {
						return nil
					}
					return err
				},
			})
		}
	}
	return inSection(section{kind: sectionStreams}, found), nil
}

func differ(all []provision.Difference) (found []Finding) {
	for _, d := range all {
		switch {
		case d.Missing:
			found = append(found, Finding{Code: StreamMissing, Where: d.Stream, What: "the server does not know it"})
		case d.Fixed != "":
			found = append(found, Finding{Code: StreamDiffers, Where: d.Stream, What: d.Fixed})
		default:
			found = append(found, Finding{Code: StreamDiffers, Where: d.Stream, What: "other settings: " + strings.Join(d.Settings, ", ")})
		}
	}
	return found
}

// ownerPrefix and an epoch are the name of the one consumer of a hint stream that stays, that of the shard's newest owner.
const ownerPrefix = "owner-"

// orphans are the consumers of one stream that stay and that no process needs.
func orphans(all []consumer) (found []consumer) {
	newest := uint64(0)
	epoch := func(c consumer) uint64 {
		rest, _ := strings.CutPrefix(c.name, ownerPrefix)
		e, _ := strconv.ParseUint(rest, 10, 64)
		if !strings.HasPrefix(c.stream, strings.TrimSuffix(topology.MatchingStream(0), "0")) {
			return 0
		}
		return e
	}
	for _, c := range all {
		newest = max(newest, epoch(c))
	}
	for _, c := range all {
		if e := epoch(c); c.forever && (e == 0 || e < newest) {
			found = append(found, c)
		}
	}
	return found
}

// lookAtOwners compares what the members hold with what there is to hold.
func (x *examiner) lookAtOwners(ctx context.Context) ([]Finding, error) {
	kv, err := x.source.js.KeyValue(ctx, topology.MembersBucket)
	if err != nil {
		return nil, err
	}
	all, err := ownership.List(ctx, kv)
	if err != nil {
		return nil, err
	}
	return inSection(section{kind: sectionOwners}, unowned(all, x.n)), nil
}

// unowned finds partitions and shards that no live member holds, and those that one gave up.
func unowned(all []ownership.Member, n topology.Partitioning) (found []Finding) {
	for _, of := range []struct {
		service, what string
		count         int
	}{{"history", "history partition", n.History}, {"timer", "timer partition", n.History}, {"matching", "matching shard", n.Matching}} {
		held := map[int]bool{}
		live := 0
		for _, m := range all {
			if m.Service != of.service || !m.Alive() {
				continue
			}
			live++
			for _, p := range m.Holds {
				held[p] = true
			}
			for _, p := range m.Stopped {
				found = append(found, Finding{Code: PartitionStopped, Where: fmt.Sprintf("%s %d", of.what, p), What: "node " + m.Node + " gave it up"})
			}
		}
		for p := range of.count {
			if !held[p] {
				found = append(found, Finding{Code: NoOwner, Where: fmt.Sprintf("%s %d", of.what, p), What: fmt.Sprintf("none of %d live members holds it", live)})
			}
		}
	}
	return found
}

// lookAtQuarantine lists what is in quarantine.
func (x *examiner) lookAtQuarantine(ctx context.Context) ([]Finding, error) {
	var found []Finding
	set := map[int]bool{}
	err := quarantine.List(ctx, x.source.js, quarantine.Filter{Partition: -1}, func(i quarantine.Item) error {
		set[int(i.Partition)] = true
		if len(found) < candidatesMax {
			found = append(found, Finding{
				Code: Quarantined, Where: itemPrefix + strconv.FormatUint(i.Seq, 10),
				What: fmt.Sprintf("%s %d put it there: %s", i.Service, i.Partition, i.Reason),
			})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	x.quarantined = set
	return inSection(section{kind: sectionQuarantine}, found), nil
}

func inSection(s section, all []Finding) []Finding {
	all = slices.Clone(all)
	for i := range all {
		all[i].section = s
	}
	return all
}
