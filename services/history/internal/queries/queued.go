package queries

import (
	"context"
	"errors"
	"fmt"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/services/history/internal/record"
	"github.com/yardmaster-io/yardmaster/shared/paging"
)

// onlyQueued reports whether a list is of the tasks that are accepted and not admitted. Its pages go by their places in the log: one lane after
// the other, each in the order in which it is admitted.
func onlyQueued(req *rpcv1.ListTasksRequest) bool {
	states := req.GetFilter().GetStates()
	return len(states) == 1 && states[0] == yardv1.TaskState_TASK_STATE_QUEUED
}

// queuedBytesMax is how many bytes of the log one page reads, the first message apart. queuedShown is how large it is, which is more as JSON.
const queuedBytesMax, queuedShown = 4 << 20, paging.BytesMax / 2

// errPageFull ends the scan of a lane.
var errPageFull = errors.New("the page is full")

// queuedPage is one page of such a list.
type queuedPage struct {
	Queries
	domain string
	limit  int
	wanted func(*taskstate.Task) bool
	levels replica.Levels
	dec    *record.Decoder
	// lane, seq and task are where it is: a message of a lane, and the first task there that it has not looked at.
	lane ids.Lane
	seq  uint64
	task int
	// read is how many bytes it has read, shown how large it is.
	read, shown int
	tasks       []*yardv1.Task
}

// queuedPlace spells where a page begins.
const queuedPlace = "%d.%d.%d"

// queued lists tasks that are not admitted.
func (q Queries) queued(ctx context.Context, req *rpcv1.ListTasksRequest) (*rpcv1.ListTasksResponse, error) {
	p := &queuedPage{Queries: q, domain: req.Domain, limit: max(1, int(req.Filter.Limit)), wanted: wantedBy(req, ids.Last, q.NowMS()), dec: record.NewDecoder()}
	if cursor := req.Filter.Cursor; cursor != "" {
		if _, err := fmt.Sscanf(cursor, queuedPlace, &p.lane, &p.seq, &p.task); err != nil || p.lane >= ids.Lanes || p.task < 0 {
			return nil, fault.At(fault.InvalidArgument, "/cursor", "is not the next_cursor of an answer")
		}
	}
	if err := q.Look(ctx, req.Domain, func(core *replica.Replica) { p.levels = core.UnreadLevels(req.Domain) }); err != nil {
		return nil, err
	}
	err := partition.Searching(ctx, q.Owner, req.Domain, func() error {
		for ; p.lane < ids.Lanes; p.lane, p.seq, p.task = p.lane+1, 0, 0 {
			if err := p.scan(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	out := &rpcv1.ListTasksResponse{Tasks: p.tasks}
	if errors.Is(err, errPageFull) {
		out.More, out.End = true, fmt.Sprintf(queuedPlace, p.lane, p.seq, p.task)
		err = nil
	}
	return out, err
}

// scan looks at the rest of a lane.
func (p *queuedPage) scan(ctx context.Context) error {
	if first := p.levels.Lowest(p.lane) + 1; p.seq < first {
		p.seq, p.task = first, 0
	}
	_, err := p.Capped.Scan(ctx, p.lane, []string{p.domain}, p.seq, p.message)
	return err
}

// message looks at the tasks of a message. The lane's reader sees to one that cannot be read.
func (p *queuedPage) message(m partition.Record) error {
	if m.Seq > p.seq {
		p.seq, p.task = m.Seq, 0
	}
	if p.read > 0 && p.read+len(m.Data) > queuedBytesMax {
		return errPageFull
	}
	p.read += len(m.Data)
	filed := topology.PlaceOfSubmit(p.Partition, m.Subject)
	if m.Seq > p.levels.Of(replica.Queue{Lane: p.lane, Place: filed}) {
		tasks, _, _ := p.dec.SubmitsOf(filed, m.Data, m.Time)
		for ; p.task < len(tasks); p.task++ {
			if t := &tasks[p.task].Task; t.Domain == p.domain && !p.take(t) {
				return errPageFull
			}
		}
	}
	p.seq, p.task = m.Seq+1, 0
	return nil
}

// take takes a task, if it is wanted; false: there is no room for it.
func (p *queuedPage) take(t *taskstate.Task) bool {
	if t.State = taskstate.None; !p.wanted(t) {
		return true
	}
	shown := record.Public(t, true, p.NowMS())
	if p.shown += shown.SizeVT(); len(p.tasks) > 0 && (len(p.tasks) == p.limit || p.shown > queuedShown) {
		return false
	}
	p.tasks = append(p.tasks, shown)
	return true
}
