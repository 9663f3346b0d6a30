package replica

// ledger is the way into another store: tasks are queued, handed out in jobs, one at
// a time and in order, and are stored when their job is. It knows up to which records of
// the log everything is stored, and where in the store: a takeover stores nothing
// twice because of it.
type ledger struct {
	queue []*Entry
	busy  []*Entry
	// queued and stored count all tasks ever.
	queued, stored uint64
	marks          []mark
	// covered: what records up to these sent here is in the store up to seq, and what
	// later ones sent lies behind seq. Both move together.
	covered Levels
	seq     uint64
	// last is where the store stands. It is ahead of seq while not all is stored that the
	// records of a mark sent.
	last uint64
	// oldest is when the first of the queue came, Unix ms.
	oldest int64
}

// mark is a place in the queue: what records up to levels sent is before it.
type mark struct {
	at     uint64
	levels Levels
}

// marksMax bounds the marks of a store that is not taking anything.
const marksMax = 64

func (l *ledger) add(e *Entry, now int64) {
	if len(l.queue) == 0 {
		l.oldest = now
	}
	l.queue = append(l.queue, e)
	l.queued++
}

// next hands out a job of up to limit tasks, or nil. A job never crosses a mark: the
// store's sequence at its end is then the one at the mark.
func (l *ledger) next(limit int) []*Entry {
	n := min(len(l.queue), limit)
	if l.busy != nil || n == 0 {
		return nil
	}
	if len(l.marks) > 0 {
		n = min(n, int(l.marks[0].at-l.stored))
	}
	l.busy = l.queue[:n:n]
	if l.queue = l.queue[n:]; len(l.queue) == 0 {
		l.queue = nil
	}
	return l.busy
}

// done takes in that the job under way is stored, and returns its tasks. If the store
// holds what records sent that are not read here, the marks on the way to it do not count.
func (l *ledger) done(seq uint64, others bool) []*Entry {
	job := l.busy
	l.busy = nil
	l.stored += uint64(len(job))
	l.last = max(l.last, seq)
	if others {
		l.marks = nil
		return job
	}
	for len(l.marks) > 0 && l.marks[0].at <= l.stored {
		l.covered, l.seq = l.marks[0].levels, l.last
		l.marks = l.marks[1:]
	}
	return job
}

// mark notes that everything that records up to levels send has been queued.
func (l *ledger) mark(levels Levels) {
	if l.queued == l.stored {
		l.covered, l.seq = levels, l.last
		return
	}
	last := len(l.marks) - 1
	switch {
	case last >= 0 && l.marks[last].at == l.queued:
		l.marks[last].levels = levels
	case last+1 < marksMax:
		l.marks = append(l.marks, mark{l.queued, levels})
	}
}

// holds tells whether e, as its cause has sent it here, is known to be in the store.
func (l *ledger) holds(e *Entry) bool {
	at := Queue{Lane: e.Position.Lane()}
	if !e.shared {
		at.Domain = e.Domain
	}
	return e.Position.Seq() <= l.covered.Of(at) && e.cause <= l.covered.Events
}

func (l *ledger) idle() bool { return l.queued == l.stored }
