package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/parallel"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/filing"
)

// keyBatchesMax bounds the atomic batches that a frontend has under way in a partition: the server works on 50 of a stream at a time.
const keyBatchesMax = 8

// storePart stores a part, with others of its domain or alone. An error that wraps natslog.ErrWrongLast says that something was said about a key.
func (a *appender) storePart(ctx context.Context, pt *part, alone bool) error {
	if alone {
		once, cancel := context.WithTimeout(a.g.base, a.g.Config.AppendTimeout)
		defer cancel()
		var stored error
		a.storeAll(once, []*part{pt}, func(_ *part, err error) { stored = err })
		return stored
	}
	pt.weight = max(1, pt.of.weight*pt.tasks()/pt.of.tasks())
	if !a.partitions[pt.partition].keyed.add(pt) {
		a.g.metrics.submitsRefused.busy.Add(1)
		return fault.New(fault.ResourceExhausted, "too many tasks wait for the log").After(fullRetryAfter)
	}
	return <-pt.done // within AppendTimeout of the flushes before it
}

// flushKeys appends parts, those of each domain together.
func (a *appender) flushKeys(parts []*part) {
	ctx, cancel := context.WithTimeout(a.g.base, a.g.Config.AppendTimeout)
	defer cancel()
	together := byDomain(parts)
	_ = parallel.Each(ctx, len(together), keyBatchesMax, func(ctx context.Context, i int) error {
		a.storeAll(ctx, together[i], func(pt *part, err error) { pt.done <- err })
		return nil
	})
}

// byDomain divides parts into those that go together.
func byDomain(parts []*part) [][]*part {
	at, messages := map[string]int{}, map[string]int{}
	var all [][]*part
	for _, pt := range parts {
		i, ok := at[pt.call.Domain]
		if n := messages[pt.call.Domain]; !ok || n+pt.messages() > partTasksMax {
			i = len(all)
			at[pt.call.Domain], messages[pt.call.Domain] = i, 0
			all = append(all, nil)
		}
		all[i] = append(all[i], pt)
		messages[pt.call.Domain] += pt.messages()
	}
	return all
}

// storeTogether stores parts of one domain in one atomic batch: first the words on their batches, then what is said about their keys, then the tasks.
func (a *appender) storeTogether(ctx context.Context, parts []*part, words []*batchWord) error {
	p := parts[0].partition
	requests := make([]filing.Request, len(parts))
	keys := 0
	for i, pt := range parts {
		requests[i] = filing.Request{Destination: pt.destination(), Tasks: pt.tasks(), Bytes: max(1, pt.weight), Apart: pt.ordered()}
		if pt.unique() {
			keys += pt.tasks()
		}
	}
	// Each goes on its own lane: the room for what shares one is counted for one flush at a time. One domain is never left for a later flush.
	plan, _ := filing.Plan(requests, &filing.Room{}, batchBytesMax)
	said, tasks, err := a.encodeKeyed(p, parts, plan, keys)
	if err != nil {
		return fault.New(fault.Internal, "encode a batch: %v", err)
	}
	members, err := encodeWords(p, words, a.g.LogVersion())
	if err != nil {
		return fault.New(fault.Internal, "encode the word on a batch: %v", err)
	}
	sent := time.Now()
	msgs := slices.Concat(members, said, tasks)
	last, err := a.g.History.AppendAtomic(ctx, msgs)
	a.learnWords(p, words, last-uint64(len(msgs)-1), err)
	if errors.Is(err, natslog.ErrFull) {
		a.refusedFull(p)
	}
	if err != nil {
		return err
	}
	for j, planned := range plan {
		for _, i := range planned.Requests {
			parts[i].lane, parts[i].seq = planned.Lane, last-uint64(len(plan)-1-j)
		}
	}
	a.g.metrics.appends.Record(time.Since(sent), 1)
	a.g.metrics.submitMessages.Add(int64(len(tasks)))
	return nil
}

// encodeKeyed makes the messages of an atomic batch. A record says how far before its message that of its key lies.
func (a *appender) encodeKeyed(p int, parts []*part, plan []filing.Message, keys int) (said, tasks []natslog.Msg, err error) {
	version := a.g.LogVersion()
	said = make([]natslog.Msg, 0, keys+len(plan))
	for j, planned := range plan {
		batch := &logv1.Batch{LogVersion: version}
		for _, i := range planned.Requests {
			pt := parts[i]
			for k, r := range pt.accepted.Records {
				if r.Unique == nil {
					break // none of them has one
				}
				r.Unique.Before = uint32(keys + j - len(said))
				data, err := (&logv1.UniqueKey{TaskId: r.Id, Key: r.Unique.Key, LogVersion: version, WithinMs: r.WithinMs}).MarshalVT()
				if err != nil {
					return nil, nil, fmt.Errorf("a unique key: %w", err)
				}
				said = append(said, natslog.Msg{Subject: uniqueSubject(p, r), Data: data}.Over(pt.open[k].over))
			}
			batch.Tasks = append(batch.Tasks, pt.accepted.Records...)
		}
		data, err := batch.MarshalVT()
		if err != nil {
			return nil, nil, err
		}
		tasks = append(tasks, natslog.Msg{Subject: subject(p, planned.Destination), Data: data})
	}
	return said, tasks, nil
}
