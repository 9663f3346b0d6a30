package intake

import (
	"context"
	"sync"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
	"github.com/yardmaster-io/yardmaster/shared/natslog"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/call"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/filing"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/groupcommit"

	core "github.com/yardmaster-io/yardmaster/services/frontend/internal/core/intake"
)

// appender brings first tries into the log: it chooses their partition, hands them to its group
// commit, and moves them to the next partition if that is known to have failed.
type appender struct {
	in *Intake

	mu         sync.Mutex
	partitions []*queues
}

// queues are what waits for one partition, and what its owner says of it.
type queues struct {
	// submits have all domains, tasklists and priorities.
	submits *groupcommit.Queue[*submission]
	// keyed are the tasks with unique keys. Those of each domain go by themselves, since one key
	// that is taken refuses a whole atomic batch.
	keyed *groupcommit.Queue[*part]

	// The appender's lock guards these: what may still be filed on the most urgent lane, and the places whose tasks the
	// owner wants to be filed there.
	room  filing.Room
	apart map[ids.Place]bool
}

func newAppender(in *Intake) *appender {
	a := &appender{in: in}
	for p := range in.Partitioning.History {
		submits := func(batch []*submission) { a.inCompany(len(batch), func() { a.flush(p, batch) }) }
		keyed := func(parts []*part) { a.inCompany(len(parts), func() { a.flushKeys(parts) }) }
		a.partitions = append(a.partitions, &queues{
			submits: groupcommit.New(in.Catalog.Weight, queuedSubmitsBytes, flushBytesMax, flushShare, submits),
			keyed:   groupcommit.New(in.Catalog.Weight, queuedSubmitsBytes, flushBytesMax, flushShare, keyed), room: filing.NewRoom(),
		})
	}
	return a
}

func (a *appender) report(load *rpcv1.HistoryLoad) {
	a.in.Placement.Report(load)
	a.mu.Lock()
	defer a.mu.Unlock()
	p := int(load.Partition)
	if p < 0 || p >= len(a.partitions) {
		return // a hint from an unknown process
	}
	c := a.partitions[p]
	c.room.Report(load.SharedTasks, load.SharedBytes, load.SharedRead)
	c.apart = nil
	for _, at := range load.Apart {
		if c.apart == nil {
			c.apart = make(map[ids.Place]bool, len(load.Apart))
		}
		c.apart[ids.Place(at)] = true
	}
}

// setApart says whether the tasks of a request are to be filed apart. Those with order keys always are, by domain: a key may have several tasklists.
func (q *queues) setApart(r *filing.Request) {
	keyed := r.Lane == ids.LaneKeyed
	r.Apart = keyed || q.apart[ids.PlaceOf(r.Domain, "")]
	r.ListApart = len(q.apart) > 0 && !keyed && r.Tasklist != "" && q.apart[ids.PlaceOf(r.Domain, r.Tasklist)]
}

// carry carries out the steps of a first try, up to its turn in the group commit, a wait, or its end.
func (a *appender) carry(s *submission) {
	for {
		step := s.Next(s.now())
		if a.in.Run.Base().Err() != nil {
			step = s.Expired()
		}
		switch step.Do {
		case core.Count:
			a.in.count(s)
		case core.Place:
			a.choose(s)
		case core.Append:
			if a.partitions[s.partition].submits.Add(s) {
				return
			}
			a.returned(s)
			s.broken(a.in.refusedBusy())
		case core.Wait:
			time.AfterFunc(min(waitOf(step), time.Until(s.call.Deadline)), func() { a.carry(s) })
			return
		case core.Finish:
			a.in.finish(s, step.End)
			return
		default: // what concerns its message is done for all that are in it
			return
		}
	}
}

// refusedBusy refuses what has no room to wait.
func (in *Intake) refusedBusy() error {
	in.metrics.submitsRefused.busy.Add(1)
	return fault.New(fault.ResourceExhausted, "too many tasks wait for the log").After(call.FullRetryAfter)
}

// choose chooses the partition of s.
func (a *appender) choose(s *submission) {
	now, at := time.Now(), a.in.Placement
	p, ok, full := s.home, false, false
	if s.pinned {
		ok, full = at.Take(s.home, s.tasks(), now), !at.HasRoom(s.home, now)
	} else {
		p, ok = at.Pick(s.tasks(), now)
		full = at.Full(now) == len(a.partitions)
	}
	if ok {
		s.place(p)
	}
	s.Placed(ok, full)
}

// learn reports how an append to p went.
func (a *appender) learn(p int, batch []*submission, err error) {
	if err == nil {
		a.in.Placement.Stored(p)
		return
	}
	a.in.metrics.appendsFailed.Add(1)
	n := 0
	for _, s := range batch {
		n += s.tasks()
	}
	a.in.Placement.Failed(p, n, err)
}

// tick places again what waits for partitions that get less.
func (a *appender) tick(now time.Time) {
	for _, p := range a.in.Placement.Tick(now) {
		a.placeAgain(a.partitions[p].submits.TakeAll())
	}
}

// placeAgain has submissions go to other partitions, whose partition gets less or has failed.
func (a *appender) placeAgain(batch []*submission) {
	for _, s := range batch {
		a.returned(s)
		s.Replace()
		a.carry(s)
	}
}

func (a *appender) returned(s *submission) { a.in.Placement.Returned(s.partition, s.tasks()) }

// append appends one message to partition p.
func (a *appender) append(p int, msg natslog.Msg) (seq uint64, duplicate bool, err error) {
	a.in.Placement.Began(p, 1)
	defer func() { a.in.Placement.Ended(p, err) }()
	ctx, cancel := context.WithTimeout(a.in.Run.Base(), a.in.AppendTimeout)
	defer cancel()
	return a.in.Log.Append(ctx, msg)
}

// After a flush of several, the next waits for companyShare of the time that it took, and companyMax at most.
// Clients that were answered come again: without a rest two halves of them take turns, with a sync for each.
const (
	companyShare = 4
	companyMax   = 2 * time.Millisecond
)

// inCompany flushes so many, and rests.
func (a *appender) inCompany(n int, flush func()) {
	began := time.Now()
	flush()
	if n > 1 {
		backoff.Sleep(a.in.Run.Base(), min(time.Since(began)/companyShare, companyMax))
	}
}
