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

// forgetDomainsMax bounds the domains that are purged one by one at a time; the others wait for the next time.
const forgetDomainsMax = 200

// Forget implements partition.Log, with ErrMore if some domains wait for the next time. A lane is purged up to the lowest of its levels; what only a domain that
// lags still needs beyond that does not keep the others' messages.
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
		domains, all, err := l.domains(ctx, stream, lane)
		if err != nil {
			return err
		}
		more = more || !all
		for _, domain := range domains {
			of := replica.Queue{Lane: lane, Domain: domain}
			if err := purge(l.submits(of), levels.Of(of)); err != nil {
				return err
			}
		}
	}
	if err := purge(topology.Event(l.Partition), levels.Events); err != nil || !more {
		return err
	}
	return partition.ErrMore
}

// domains are some that a lane has messages of, others each time; or all of them.
func (l *Log) domains(ctx context.Context, stream jetstream.Stream, lane ids.Lane) (some []string, whole bool, err error) {
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(topology.SubmitLane(l.Partition, lane)))
	if err != nil {
		return nil, false, fmt.Errorf("list the domains of lane %s: %w", lane, err)
	}
	var all []string
	for subject := range info.State.Subjects {
		if domain := topology.DomainOfSubmit(l.Partition, subject); domain != "" {
			all = append(all, domain)
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	if len(all) <= forgetDomainsMax {
		return all, true, nil
	}
	next, _ := slices.BinarySearchFunc(all, l.forgotten[lane], strings.Compare)
	all = append(all[next:], all[:next]...)[:forgetDomainsMax]
	l.forgotten[lane] = all[len(all)-1] + "\x00"
	return all, false, nil
}
