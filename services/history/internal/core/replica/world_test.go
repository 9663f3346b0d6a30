package replica

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// dump is all that two owners have to agree about.
func dump(t *taskstate.Task) string {
	var b strings.Builder
	fmt.Fprintf(&b, "redriven=%+v %s %s v%d failures=%d lost=%d back=%d parkings=%d pos=%d/%s due=%d ready=%d finished=%d attempt=%+v result=%q err=%q/%q cancel=%v/%q expiry=%v",
		t.Redriven(), t.ID, t.State, t.Version, t.Failures, t.Lost, t.HandedBack, t.Parkings, t.Position.Seq(), t.Position.Lane(), t.DueAt, t.ReadyAt, t.FinishedAt,
		t.Attempt, t.Result.Data, t.ErrMessage, t.ErrType, t.CancelRequested, t.CancelReason, t.Expiry())
	for _, s := range t.Steps {
		fmt.Fprintf(&b, "\n    %+v", s)
	}
	if o := t.Order(); o != nil {
		known := *o
		known.Turn = false // what its owner knows
		fmt.Fprintf(&b, " key=%+v", known)
	}
	b.WriteString(updatesOf(t))
	return b.String()
}

// stored is a record in another store.
type stored struct {
	seq    uint64
	task   taskstate.Task
	copies int
}

// world is the log and the stores that the lives of one partition share.
type world struct {
	rng *rand.Rand
	log []*message
	// visible is how many messages of the log have been appended by now.
	visible int
	archive map[Stay]*stored
	// letters are the dead letters; their sequences are their stays, from 1.
	letters map[ids.TaskID]*stored
	timer   map[Stay]*stored
	// taken are tasks that were taken out of the timer store for a cancel.
	taken      map[ids.TaskID]bool
	archiveSeq uint64
	timerSeq   uint64
	saved      Checkpoint
	// story is what the log is of; nil = of nothing that is known.
	story    *story
	answers  map[uint64]map[int]fault.Code
	released map[string]bool
	trace    []string
}

func newWorld(rng *rand.Rand, s *story) *world {
	return &world{
		rng: rng, log: slices.Clone(s.log), archive: make(map[Stay]*stored), letters: make(map[ids.TaskID]*stored), timer: make(map[Stay]*stored),
		story: s,
		taken: make(map[ids.TaskID]bool), answers: make(map[uint64]map[int]fault.Code), released: make(map[string]bool),
	}
}

// life is one owner.
type life struct {
	*world
	r   *Replica
	now Now
	// fx are the effects of a turn.
	fx Effects
	// liveFrom is the log's position of events at which it began to answer.
	liveFrom uint64
	// What is under way: done in the store, and not reported.
	jobs     [3][]*Entry
	busy     [3]bool
	storedAt [3]uint64
	written  [3]bool
	searches []Search
	found    []*Found
	spent    []Letter
	save     *Checkpoint
	sent     bool
}

func (w *world) note(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf(format, args...))
}

func (w *world) end() uint64 {
	if w.visible == 0 {
		return 0
	}
	return w.log[w.visible-1].seq
}

// next is the next message of a reader that has read up to level.
func (w *world) next(events bool, lane ids.Lane, level uint64) *message {
	for _, m := range w.log[:w.visible] {
		if m.events == events && (events || m.lane == lane) && m.seq > level {
			return m
		}
	}
	return nil
}

// nextOf is the next message of the reader of a domain that lags.
func (w *world) nextOf(at Queue, level uint64) *message {
	for _, m := range w.log[:w.visible] {
		if !m.events && m.queue() == at && m.seq > level {
			return m
		}
	}
	return nil
}

// inputOf is a fresh copy of a message as a domain's own reader gives it.
func (m *message) inputOf() Input {
	in := m.input().(*Submits)
	in.Queue = true
	return in
}

// input is a fresh copy of a message, as if decoded.
func (m *message) input() Input {
	if !m.events {
		in := &Submits{Lane: m.lane, Domain: m.domain, Seq: m.seq, At: m.at, Bytes: 100}
		for i := range m.tasks {
			in.Tasks = append(in.Tasks, &Entry{Task: cloneTask(&m.tasks[i])})
		}
		return in
	}
	in := &Events{Seq: m.seq, At: m.at, Bytes: 100, RequestID: m.seq, Events: slices.Clone(m.list), Carried: make(map[int]*Carried)}
	in.Shard, in.Epoch, in.Delivered, in.Polls = m.shard, m.epoch, m.delivered, m.polls
	if m.shard > 0 {
		in.RequestID = m.request
	}
	if m.asked {
		in.ReplyTo = fmt.Sprint(m.seq)
	}
	for i, c := range m.carried {
		task := cloneTask(&c.task)
		task.Before = 0
		in.Carried[i] = &Carried{Entry: &Entry{Task: task}, AsOf: c.asOf, Granted: c.granted}
	}
	return in
}

func (l *life) step(in Input) {
	if !l.r.Step(in, l.now, &l.fx) {
		panic("the lease is over")
	}
	l.take()
	l.check()
}

func (l *life) check() {
	if err := l.r.Check(); err != nil && (l.story != nil || !ofLies(err)) {
		panic(err)
	}
}

func (l *life) flush() {
	l.r.Flush(l.now, &l.fx)
	l.take()
	l.fx.Reset()
	l.check()
}

// take carries out what a step asks for; the hints stay until the turn ends.
func (l *life) take() {
	fx := &l.fx
	defer func() {
		fx.Archive, fx.Park, fx.Append, fx.Save = nil, nil, nil, nil
		fx.ParkLetters, fx.Letters = nil, nil
		fx.Searches, fx.Answers = fx.Searches[:0], fx.Answers[:0]
	}()
	if fx.Halt != nil {
		panic(fx.Halt)
	}
	if fx.Archive != nil {
		l.begin(JobArchive, fx.Archive)
	}
	if fx.Park != nil {
		l.begin(JobPark, fx.Park)
		l.spent = fx.ParkLetters
	}
	l.drop(fx.Letters)
	if fx.Append != nil {
		l.begin(JobAppend, nil)
		l.propose(fx.Append)
	}
	if fx.Save != nil {
		l.save, l.sent = fx.Save, false
	}
	l.searches = append(l.searches, fx.Searches...)
	for _, a := range fx.Answers {
		asked, err := strconv.ParseUint(a.ReplyTo, 10, 64)
		if err != nil {
			panic(err)
		}
		codes := l.answers[asked]
		if codes == nil {
			codes = make(map[int]fault.Code)
			l.answers[asked] = codes
		}
		for i, v := range a.Verdicts {
			if _, ok := codes[a.First+i]; ok {
				panic(fmt.Sprintf("event %d of message %d is answered twice", a.First+i, asked))
			}
			codes[a.First+i] = v.Code
			if v.Fenced {
				codes[a.First+i] += fencedMark
			}
		}
	}
	for _, g := range fx.Triggers {
		for i := range len(g.Packed) / ids.TriggerBytes {
			l.mayRun(ids.TriggerAt(g.Packed, i).ID)
		}
	}
	for _, g := range fx.Releases {
		for b := g.Packed; len(b) > 0; b = b[ids.BookingBytes:] {
			l.released[string(b[:ids.BookingBytes])+fmt.Sprint(g.Limits, " at ", g.Shard+1)] = true
		}
	}
}

// mayRun checks that a task whose trigger is sent is the first of its order key: the grab that follows asks no more.
func (l *life) mayRun(id ids.TaskID) {
	if l.story == nil {
		return
	}
	if m := l.story.tasks[id]; m.line != nil && m.endedAt == 0 && !l.story.isFirst(m, l.end()) {
		panic(fmt.Sprintf("the trigger of %s is sent at %d, and one before it has not ended", id, l.end()))
	}
}

func (l *life) begin(kind JobKind, job []*Entry) {
	if l.busy[kind] {
		panic("two jobs of a kind")
	}
	l.jobs[kind], l.busy[kind], l.written[kind] = job, true, false
}

// propose appends the carried states that the owner wishes; what else it wishes is not
// part of the story, and is lost.
func (l *life) propose(all []Proposal) {
	m := &message{events: true, carried: make(map[int]carriedRecord), seq: l.end() + 1, at: l.log[l.visible-1].at}
	for _, p := range all {
		if p.Kind != taskstate.Carried {
			continue
		}
		m.carried[len(m.list)] = carriedRecord{cloneTask(p.Carried), p.AsOf, p.Granted}
		m.list = append(m.list, taskstate.Event{Kind: p.Kind, ID: p.ID, Fence: p.Fence})
		m.want = append(m.want, new(want))
	}
	if len(m.list) == 0 || l.visible < len(l.log) && l.log[l.visible].seq == m.seq {
		return
	}
	l.log = slices.Insert(l.log, l.visible, m)
	l.visible++
}

// write carries a job out in its store.
func (l *life) write(kind JobKind) {
	l.written[kind] = true
	for _, e := range l.jobs[kind] {
		switch kind {
		case JobArchive:
			l.archiveSeq++
			put(l.archive, Stay{e.ID, e.Parkings}, l.archiveSeq, &e.Task)
			// The log of a story may hold the next stay already: who brought that has stored this end, and deleted the letter.
			at := l.firing(e.ID, e.Parkings+1, 0)
			came := at >= 0 && at < l.visible
			if was := l.letters[e.ID]; e.State == taskstate.Dead && !came && (was == nil || was.task.Parkings < e.Parkings) {
				l.letters[e.ID] = &stored{seq: uint64(e.Parkings) + 1, task: cloneTask(&e.Task)}
			}
		case JobPark:
			l.timerSeq++
			put(l.timer, Stay{e.ID, e.Parkings}, l.timerSeq, &e.Task)
		}
	}
	l.storedAt = [3]uint64{l.archiveSeq, l.timerSeq}
}

// drop deletes letters.
func (l *life) drop(letters []Letter) {
	for _, d := range letters {
		if kept := l.letters[d.ID]; kept != nil && kept.seq <= d.Seq {
			delete(l.letters, d.ID)
		}
	}
}

// ended is the last end of a task in the archive; nil = there is none.
func (w *world) ended(id ids.TaskID) (last *stored) {
	for stay, kept := range w.archive {
		if stay.ID == id && (last == nil || stay.Parkings > last.task.Parkings) {
			last = kept
		}
	}
	return last
}

func put[K comparable](store map[K]*stored, key K, seq uint64, t *taskstate.Task) {
	if store[key] == nil {
		store[key] = new(stored)
	}
	store[key].copies++
	store[key].seq, store[key].task = seq, cloneTask(t)
}

// lookUp answers a search with what the stores hold now.
func (l *life) lookUp(s Search) *Found {
	f := &Found{Search: s}
	own := func(t *taskstate.Task) bool { return s.Domain == "" || s.Domain == t.Domain }
	stay := l.waiting(s.ID)
	if stay != nil && s.Cancel && (s.Take || !s.Update) && own(&stay.task) && stay.task.Position.Seq() < s.Seq {
		if fires := l.firing(s.ID, stay.task.Parkings, l.visible); fires >= 0 {
			l.visible = max(l.visible, fires+1) // the timer was faster
		} else {
			l.taken[s.ID] = true
			f.Taken = l.read(&stay.task)
		}
	}
	if letter := l.letters[s.ID]; s.Redrive && letter != nil && own(&letter.task) {
		f.Letter, f.LetterSeq = l.read(&letter.task), letter.seq
	}
	kept := l.ended(s.ID)
	if kept != nil {
		f.Archived = l.read(&kept.task)
	}
	if stay = l.waiting(s.ID); stay != nil && (!s.Cancel || s.Update && !s.Take && own(&stay.task)) {
		f.Waiting = l.read(&stay.task)
	} else if f.Taken == nil && (kept == nil || kept.task.State == taskstate.Dead) {
		f.Unread = l.unread(s.ID, s.Redrive)
	}
	for lane := range f.Ends {
		for _, m := range l.log[:l.visible] {
			if !m.events && m.lane == ids.Lane(lane) {
				f.Ends[lane] = m.seq
			}
		}
	}
	return f
}

// read is a copy of a record in a store, which does not say where the stay before was.
func (l *life) read(t *taskstate.Task) *Entry {
	c := cloneTask(t)
	c.Before = 0
	return &Entry{Task: c}
}

// waiting is the stay of a task in the timer store that has not fired so far.
func (w *world) waiting(id ids.TaskID) (last *stored) {
	for stay, s := range w.timer {
		if stay.ID == id && (last == nil || stay.Parkings > last.task.Parkings) {
			last = s
		}
	}
	if last == nil {
		return nil
	}
	if at := w.firing(id, last.task.Parkings, 0); at >= 0 && at < w.visible {
		return nil
	}
	return last
}

// firing is where in the log, from an index on, a stay comes back; -1 = nowhere.
func (w *world) firing(id ids.TaskID, parkings uint32, from int) int {
	for i := from; i < len(w.log); i++ {
		for _, t := range w.log[i].tasks {
			if t.ID == id && t.Parkings >= parkings {
				return i
			}
		}
	}
	return -1
}

// unread is the stay of a task behind the read levels, the first or the last: the timer store knows where it has fired to, so what a redrive made is
// found before a copy of an earlier stay.
func (l *life) unread(id ids.TaskID, last bool) (found *Entry) {
	levels := l.r.UnreadLevels("")
	for _, m := range l.log[:l.visible] {
		for i := range m.tasks {
			if t := &m.tasks[i]; t.ID == id && !m.events && m.seq > levels.Of(m.queue()) && (found == nil || last && t.Parkings > found.Parkings) {
				c := cloneTask(t)
				c.Before, c.Position = c.Position, m.position()
				found = &Entry{Task: c}
			}
		}
	}
	return found
}

// outcome names what ended an attempt, whatever position the fence claims.
type outcome struct {
	kind    taskstate.Kind
	id      ids.TaskID
	version uint32
	nonce   uint64
}

func outcomeOf(ev *taskstate.Event) outcome {
	return outcome{ev.Kind, ev.ID, ev.Fence.Version, ev.Fence.Nonce}
}

func cloneTask(t *taskstate.Task) taskstate.Task {
	c := *t
	c.SetSteps(slices.Clone(t.Steps), t.StepsDropped)
	if t.Extra != nil {
		extra := *t.Extra
		c.Extra = &extra
	}
	return c
}
