package natshistory

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
)

// forgetMax bounds the places that are purged one by one at a time; the others wait for the next time.
const forgetMax = 200

// Forget implements partition.Log, with ErrMore if some places wait for the next time. A lane is purged up to the lowest of its levels; what only a place that
// is split off still needs beyond that does not keep the others' messages.
func (l *Log) Forget(ctx context.Context, levels replica.Levels) error {
	stream, err := l.JetStream.Stream(ctx, topology.HistoryStream(l.Partition))
	if err != nil {
		return err
	}
	purge := func(subject string, upTo uint64) error {
		if upTo == 0 {
			return nil
		}
		if err := stream.Purge(ctx, jetstream.WithPurgeSubject(subject), jetstream.WithPurgeSequence(upTo+1)); err != nil {
			return fmt.Errorf("purge %s up to %d: %w", subject, upTo, err)
		}
		return nil
	}
	more := false
	for lane := range ids.Lane(ids.Lanes) {
		lowest := levels.Lowest(lane)
		if err := purge(topology.SubmitLane(l.Partition, lane), lowest); err != nil {
			return err
		}
		if !slices.ContainsFunc(levels.Queues, func(q replica.QueueLevel) bool { return q.Lane == lane }) {
			continue
		}
		if err := purge(topology.SubmitShared(l.Partition, lane), levels.Lanes[lane]); err != nil {
			return err
		}
		some, all, err := l.filed(ctx, stream, lane, levels)
		if err != nil {
			return err
		}
		more = more || !all
		for _, f := range some {
			if err := purge(f.subject, levels.PurgeTo(replica.Queue{Lane: lane, Place: f.at})); err != nil {
				return err
			}
		}
	}
	if err := purge(topology.Event(l.Partition), levels.Events); err != nil || !more {
		return err
	}
	return partition.ErrMore
}

// filed is what a subject filters, all of which is read up to one level.
type filed struct {
	subject string
	at      ids.Place
}

// filed are some of what a lane has messages of, others each time; or all of it. It is by domain, and by subject for domains of which a tasklist is
// split off.
func (l *Log) filed(ctx context.Context, stream jetstream.Stream, lane ids.Lane, levels replica.Levels) (some []filed, whole bool, err error) {
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(topology.SubmitLane(l.Partition, lane)))
	if err != nil {
		return nil, false, fmt.Errorf("list what lane %s has: %w", lane, err)
	}
	divided := make(map[string]bool)
	for _, q := range levels.Queues {
		if q.Lane == lane && q.Place.Tasklist() != "" {
			divided[q.Place.Domain()] = true
		}
	}
	var all []filed
	for subject := range info.State.Subjects {
		at := topology.PlaceOfSubmit(l.Partition, subject)
		switch domain := at.Domain(); {
		case at == "":
		case divided[domain]:
			all = append(all, filed{subject, at})
		default:
			all = append(all, filed{topology.SubmitDomain(l.Partition, lane, domain), ids.PlaceOf(domain, "")})
		}
	}
	bySubject := func(f filed, subject string) int { return strings.Compare(f.subject, subject) }
	slices.SortFunc(all, func(a, b filed) int { return bySubject(a, b.subject) })
	all = slices.Compact(all)
	if len(all) <= forgetMax {
		return all, true, nil
	}
	next, _ := slices.BinarySearchFunc(all, l.forgotten[lane], bySubject)
	all = append(all[next:], all[:next]...)[:forgetMax]
	l.forgotten[lane] = all[len(all)-1].subject // which is the first one of the next time, too
	return all, false, nil
}
