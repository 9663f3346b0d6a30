package partition

import (
	"context"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/record"
)

// mark is a cancel of a task that is not in memory. It pins the event floor, so
// that it cannot be lost, until it is known where the task is: in the timer store, which
// gives it up; further down the log, where the mark waits for it; or nowhere.
type mark struct {
	seq    uint64
	at     int64
	reason string
	domain string
	asked  []waitingVerdict
	owner  *Owner
	// settled: every asker has its verdict; the mark may still wait for the task.
	settled bool
	verdict taskstate.Verdict
}

// settle answers all who asked.
func (m *mark) settle(v taskstate.Verdict) {
	for _, w := range m.asked {
		w.answer.set(w.index, v)
		m.owner.outbox.answerIfDone(w.answer)
	}
	m.asked, m.settled, m.verdict = nil, true, v
}

// mark files a cancel and starts to look for its task.
func (o *Owner) mark(w waitingVerdict) {
	m, known := o.marks[w.event.ID]
	if known {
		m.asked = append(m.asked, w)
		if m.settled {
			m.settle(m.verdict)
		}
		return
	}
	m = &mark{
		seq: w.seq, at: w.at, reason: w.event.Message, domain: w.event.Domain,
		asked: []waitingVerdict{w}, owner: o,
	}
	o.marks[w.event.ID] = m
	o.wanted = append(o.wanted, w.event.ID)
}

const (
	// searchesMax is how many searches may be under way, searchIDsMax how many tasks one
	// looks for: cancels of a turn are looked for together.
	searchesMax  = 4
	searchIDsMax = 500
)

// search looks for the tasks of new marks, off the loop.
func (o *Owner) search() {
	for len(o.wanted) > 0 && o.searches < searchesMax {
		n := min(len(o.wanted), searchIDsMax)
		ids := o.wanted[:n:n]
		if o.wanted = o.wanted[n:]; len(o.wanted) == 0 {
			o.wanted = nil
		}
		o.searches++
		levels := o.readLevels()
		go func() {
			o.runSearch(o.outbox.ctx, ids, levels)
			o.post(o.outbox.ctx, func() { o.searches-- })
		}()
	}
}

func (o *Owner) runSearch(ctx context.Context, wanted []ids.TaskID, levels [ids.Lanes]uint64) {
	var found []*logv1.Record
	var fired []ids.TaskID
	ok := o.persist(ctx, "cancel in the timer store", func(ctx context.Context) (err error) {
		found, fired, err = o.cancelWaiting(ctx, wanted)
		return err
	})
	if !ok {
		return
	}
	o.post(ctx, func() { o.markedFound(found, fired) })
	taken := make(map[ids.TaskID]bool, len(found)+len(fired))
	for _, r := range found {
		taken[ids.TaskID(r.Id)] = true
	}
	for _, id := range fired {
		taken[id] = true
	}
	for _, id := range wanted {
		if taken[id] {
			continue
		}
		var unread, archived *logv1.Record
		ok := o.persist(ctx, "search of a task", func(ctx context.Context) (err error) {
			if unread, err = o.Finder.Unread(ctx, id, levels); err != nil || unread != nil {
				return err
			}
			archived, err = o.Finder.Archived(ctx, id)
			return err
		})
		if !ok {
			return
		}
		o.post(ctx, func() { o.markedAbsent(id, unread != nil, archived) })
	}
}

// cancelWaiting takes tasks out of the timer store, in parts where their records do not
// fit into one answer.
func (o *Owner) cancelWaiting(ctx context.Context, wanted []ids.TaskID) ([]*logv1.Record, []ids.TaskID, error) {
	found, fired, err := o.Timer.Cancel(ctx, wanted)
	if fault.CodeOf(err) != fault.InvalidArgument || len(wanted) == 1 {
		return found, fired, err
	}
	half := len(wanted) / 2
	found, fired, err = o.cancelWaiting(ctx, wanted[:half])
	if err != nil {
		return nil, nil, err
	}
	more, moreFired, err := o.cancelWaiting(ctx, wanted[half:])
	return append(found, more...), append(fired, moreFired...), err
}

// markedFound settles the cancels of tasks that the timer store gave up or fired.
func (o *Owner) markedFound(found []*logv1.Record, fired []ids.TaskID) {
	dec := record.NewDecoder()
	for _, r := range found {
		t, err := dec.Task(r)
		if err != nil {
			o.Logger.Error("the timer store returned a broken record", "partition", o.Partition, "error", err)
			continue
		}
		m, ok := o.marks[t.ID]
		if !ok {
			continue
		}
		delete(o.marks, t.ID)
		if m.domain != "" && m.domain != t.Domain {
			// A tenant cancelled another's task: put it back.
			o.restore(t)
			m.settle(notFound())
			continue
		}
		t.Position = 0
		e := &entry{Task: *t}
		o.lineUp(e)
		o.tasks[t.ID] = e
		o.carryOut(e, taskstate.CancelUnseen(&e.Task, m.reason, m.at), source{event: true, seq: m.seq})
		m.settle(taskstate.Verdict{})
	}
	for _, id := range fired {
		if m, ok := o.marks[id]; ok {
			m.settle(taskstate.Verdict{})
		}
	}
}

// restore parks a task again that was taken out of the timer store by mistake.
func (o *Owner) restore(t *taskstate.Task) {
	t.Position = 0
	t.State = taskstate.Waiting
	t.Parkings++
	e := &entry{Task: *t}
	o.lineUp(e)
	o.tasks[t.ID] = e
	o.outbox.park(e)
	e.recount()
}

// markedAbsent settles the cancel of a task that is not waiting.
func (o *Owner) markedAbsent(id ids.TaskID, unread bool, archived *logv1.Record) {
	m, ok := o.marks[id]
	if !ok {
		return // read in the meantime
	}
	switch {
	case unread:
		m.settle(taskstate.Verdict{})
	case archived != nil && (m.domain == "" || m.domain == archived.Domain):
		delete(o.marks, id)
		m.settle(taskstate.RefuseEnded(taskstate.State(archived.State), 0, false, &taskstate.Event{Kind: taskstate.Cancel}))
	default:
		delete(o.marks, id)
		m.settle(taskstate.Verdict{Code: fault.NotFound, Message: "no such task"})
	}
}

// expireMarks drops marks whose task never came by: it was submitted, fired or
// finished elsewhere long ago, and an hour is far past any way through the log.
func (o *Owner) expireMarks(now time.Time) {
	for id, m := range o.marks {
		if m.settled && o.caughtUp() && now.UnixMilli()-m.at > markMax.Milliseconds() {
			delete(o.marks, id)
		}
	}
}

const markMax = time.Hour

// caughtUp tells whether every lane has been read to its end.
func (o *Owner) caughtUp() bool {
	for i := range o.pending {
		if o.pending[i].Load() > 0 {
			return false
		}
	}
	return true
}
