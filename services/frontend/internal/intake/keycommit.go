package intake

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/parallel"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/filing"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/groupcommit"
)

// keyBatchesMax bounds the atomic batches that a frontend has under way in a partition: the server works on 50 of a stream at a time.
const keyBatchesMax = 8

// storePart stores a part, with others of its domain and batch or alone. An error that wraps natslog.ErrWrongLast says that something was said about a key,
// or that the batch may be closed.
func (a *appender) storePart(ctx context.Context, pt *part, alone bool) error {
	if alone {
		once, cancel := context.WithTimeout(a.in.Run.Base(), a.in.AppendTimeout)
		defer cancel()
		return a.storeTogether(once, []*part{pt})
	}
	pt.weight = max(1, pt.of.weight*pt.tasks()/pt.of.tasks())
	if !a.partitions[pt.partition].keyed.Add(pt) {
		return a.in.refusedBusy()
	}
	return <-pt.done // within AppendTimeout of the flushes before it
}

// flushKeys appends parts, those of each domain and batch together.
func (a *appender) flushKeys(parts []*part) {
	ctx, cancel := context.WithTimeout(a.in.Run.Base(), a.in.AppendTimeout)
	defer cancel()
	together := byBatch(parts)
	_ = parallel.Each(ctx, len(together), keyBatchesMax, func(ctx context.Context, i int) error {
		err := a.storeTogether(ctx, together[i])
		for _, pt := range together[i] {
			pt.done <- err
		}
		return nil
	})
}

// byBatch divides parts into those that go together: of one domain, and of one batch or of none. One whose keys were checked does not go with those that a
// taken key may refuse.
func byBatch(parts []*part) [][]*part {
	type group struct {
		batchRef
		checked bool
	}
	at, tasks := map[group]int{}, map[group]int{}
	var all [][]*part
	for _, pt := range parts {
		of := group{pt.batchRef(), pt.KeysChecked()}
		i, ok := at[of]
		if n := tasks[of]; !ok || n+pt.tasks() > partTasksMax {
			i = len(all)
			at[of], tasks[of] = i, 0
			all = append(all, nil)
		}
		all[i] = append(all[i], pt)
		tasks[of] += pt.tasks()
	}
	return all
}

// storeTogether stores parts of one domain in one atomic batch: first what is said about their keys, then the tasks.
func (a *appender) storeTogether(ctx context.Context, parts []*part) error {
	p := parts[0].partition
	requests := make([]filing.Request, len(parts))
	keys := 0
	for i, pt := range parts {
		requests[i] = pt.filing()
		requests[i].Apart = pt.ordered()
		keys += pt.tasks()
	}
	// Each goes on its own lane: the room for what shares one is counted for one flush at a time. One domain is never left for a later flush.
	plan, _ := filing.Plan(requests, &filing.Room{}, groupcommit.MessageBytesMax)
	said, tasks, err := a.encodeKeyed(p, parts, plan, keys)
	if err != nil {
		return notEncoded(err)
	}
	sent := time.Now()
	a.in.Placement.Began(p, 1)
	last, err := a.in.Log.AppendAtomic(ctx, append(said, tasks...))
	a.in.Placement.Ended(p, err)
	if errors.Is(err, natslog.ErrFull) {
		a.learn(p, nil, err)
	}
	if err != nil {
		return err
	}
	for j, planned := range plan {
		for _, i := range planned.Requests {
			parts[i].lane, parts[i].seq = planned.Lane, last-uint64(len(plan)-1-j)
		}
	}
	a.in.metrics.appends.Record(time.Since(sent), 1)
	a.in.metrics.submitMessages.Add(int64(len(tasks)))
	return nil
}

// encodeKeyed makes the messages of an atomic batch. A record says how far before its message that of its key lies.
func (a *appender) encodeKeyed(p int, parts []*part, plan []filing.Message, keys int) (said, tasks []natslog.Msg, err error) {
	version := a.in.LogVersion()
	said = make([]natslog.Msg, 0, keys+len(plan))
	for j, planned := range plan {
		batch := &logv1.Batch{LogVersion: version}
		for _, i := range planned.Requests {
			pt := parts[i]
			for k, r := range pt.accepted.Records {
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
		tasks = append(tasks, parts[planned.Requests[0]].member(natslog.Msg{Subject: subject(p, planned.Destination), Data: data}))
	}
	return said, tasks, nil
}
