package replica

import "slices"

func (l *ledger) add(e *Entry, now int64) {
	if len(l.queue) == 0 {
		l.oldest = now
	}
	l.queue = append(l.queue, e)
}

// next hands out a job of up to limit tasks, or nil.
func (l *ledger) next(limit int) []*Entry {
	n := min(len(l.queue), limit)
	if l.busy != nil || n == 0 {
		return nil
	}
	l.busy = l.queue[:n:n]
	if l.queue = l.queue[n:]; len(l.queue) == 0 {
		l.queue = nil
	}
	return l.busy
}

// nextWanted hands out a job of up to limit tasks that are wanted, or nil. A job of which none is counts as stored.
func (l *ledger) nextWanted(limit int, wanted func(*Entry) bool) (job []*Entry) {
	for l.busy == nil && len(l.queue) > 0 {
		job = slices.DeleteFunc(slices.Clone(l.next(limit)), func(e *Entry) bool { return !wanted(e) })
		if len(job) > 0 {
			return job
		}
		l.done(l.last)
	}
	return nil
}

// done takes in that the job under way is stored up to seq, and returns its tasks.
func (l *ledger) done(seq uint64) []*Entry {
	job := l.busy
	l.busy = nil
	l.last = max(l.last, seq)
	return job
}

func (l *ledger) idle() bool { return len(l.queue) == 0 && l.busy == nil }
