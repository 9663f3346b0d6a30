package replica

import (
	"slices"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func entries(n int) []*Entry {
	var all []*Entry
	for range n {
		all = append(all, new(Entry))
	}
	return all
}

func upTo(n uint64) Levels { return Levels{Events: n} }

// TestLedgerCoversWhatIsStored: the levels of a mark, and the place in the store that belongs to
// them, hold once all that was queued before the mark is stored, and not before (R14, R20).
func TestLedgerCoversWhatIsStored(t *testing.T) {
	var l ledger
	l.mark(upTo(1))
	if !l.covered.equal(&Levels{Events: 1}) || l.seq != 0 {
		t.Fatalf("nothing is queued, so all is covered: %+v", l)
	}
	for _, e := range entries(5) {
		l.add(e, 7)
	}
	l.mark(upTo(2))
	l.mark(upTo(3)) // at the same place: the later one counts
	for _, e := range entries(2) {
		l.add(e, 8)
	}
	l.mark(upTo(4))
	if l.oldest != 7 || len(l.marks) != 2 || l.idle() {
		t.Fatalf("%+v", l)
	}
	steps := []struct {
		limit, job int
		seq        uint64
		covered    Levels
		coveredSeq uint64
	}{
		{3, 3, 11, upTo(1), 0}, // part of what lies before the mark: nothing is covered
		{9, 2, 12, upTo(3), 12},
		{9, 2, 13, upTo(4), 13},
	}
	for i, s := range steps {
		if job := l.next(s.limit); len(job) != s.job {
			t.Fatalf("job %d has %d tasks, want %d: it must not cross a mark", i, len(job), s.job)
		}
		if l.next(9) != nil {
			t.Fatal("two jobs at a time")
		}
		if done := l.done(s.seq, false); len(done) != s.job || !l.covered.equal(&s.covered) || l.seq != s.coveredSeq {
			t.Fatalf("after job %d: covered %+v to %d, want %+v to %d", i, l.covered, l.seq, s.covered, s.coveredSeq)
		}
		testkit.NoError(t, l.check("test"))
	}
	if !l.idle() || l.next(9) != nil || l.queue != nil {
		t.Fatalf("it should be idle: %+v", l)
	}
	l.mark(upTo(9))
	if !l.covered.equal(&Levels{Events: 9}) || l.seq != 13 {
		t.Fatalf("%+v", l)
	}
	l.add(new(Entry), 0)
	l.next(1)
	l.done(5, false) // an older place in the store: a store never goes back
	testkit.MustEqual(t, "it fell back to", l.last, 13)
}

func TestLedgerHolds(t *testing.T) {
	var l ledger
	l.covered.Lanes[2], l.covered.Events = 10, 20
	for _, c := range []struct {
		seq  uint64
		lane ids.Lane
		ev   uint64
		want bool
	}{{10, 2, 20, true}, {11, 2, 20, false}, {10, 2, 21, false}, {10, 3, 0, false}} {
		e := &Entry{Task: taskstate.Task{Domain: "shop", Position: ids.NewPosition(c.seq, c.lane)}, cause: c.ev}
		if got := l.holds(e); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestLedgerMarksAreBounded(t *testing.T) {
	var l ledger
	for i := range uint64(2 * marksMax) {
		l.add(new(Entry), 0)
		l.mark(upTo(i))
	}
	if len(l.marks) != marksMax || l.marks[marksMax-1].levels.Events != marksMax-1 {
		t.Fatalf("%d marks", len(l.marks))
	}
}

// TestI12_LeaseIsMeasuredFromBefore: a lease lasts from before its checkpoint was sent, and an
// answer that comes late does not shorten a later one (R11).
func TestI12_LeaseIsMeasuredFromBefore(t *testing.T) {
	var l lease
	l.granted(time.Second)
	if !l.holds(3*time.Second-1) || l.holds(3*time.Second) {
		t.Error("a lease lasts two seconds from when it was asked for")
	}
	l.granted(0)
	if !l.holds(3*time.Second - 1) {
		t.Error("an older answer shortened the lease")
	}
}

// TestI12_PurgesWhatIsCoveredForTwiceALease (R11).
func TestI12_PurgesWhatIsCoveredForTwiceALease(t *testing.T) {
	var p purger
	if p.take(time.Hour) != nil {
		t.Fatal("nothing is covered")
	}
	p.saved(upTo(1), 0)
	p.saved(upTo(2), time.Second)
	p.saved(upTo(3), 10*time.Second)
	if got := p.take(2 * LeaseFor); got != nil {
		t.Fatalf("%+v: too early", got)
	}
	if got := p.take(2*LeaseFor + time.Second + 1); got == nil || got.Events != 2 {
		t.Fatalf("%+v, want the newest that is old enough", got)
	}
	p.saved(upTo(3), 10*time.Second)
	if got := p.take(time.Minute); got == nil || got.Events != 3 {
		t.Fatalf("%+v", got)
	}
	p.saved(upTo(3), time.Minute)
	if got := p.take(time.Hour); got != nil {
		t.Fatalf("%+v: nothing new", got)
	}
	p.purged(true) // not all of it
	p.saved(upTo(3), time.Hour)
	if got := p.take(2 * time.Hour); got == nil || got.Events != 3 || !p.busy {
		t.Fatalf("%+v, want what was left", got)
	}
	p.purged(false)
	p.saved(upTo(3), 2*time.Hour)
	if got := p.take(3 * time.Hour); got != nil || p.busy {
		t.Fatalf("%+v: nothing is left", got)
	}
	for i := range 3 * coveredMax {
		p.saved(upTo(uint64(i)), time.Duration(i))
	}
	if len(p.covered) != coveredMax || p.covered[0].levels.Events != 0 || p.covered[coveredMax-1].levels.Events != 3*coveredMax-1 {
		t.Fatalf("%d are remembered; the first and the last must be among them", len(p.covered))
	}
}

func TestMeter(t *testing.T) {
	m := meter{every: 2}
	if m.half() != 0 {
		t.Error("half of nothing")
	}
	for i := uint64(1); i <= 10; i++ {
		m.add(10*i, 1, 100)
	}
	if events, bytes := m.behind(100); events != 0 || bytes != 0 {
		t.Errorf("behind the end are %d events, %d bytes", events, bytes)
	}
	testkit.Equal(t, "half is at", m.half(), 50)
	for _, c := range []struct{ level, events uint64 }{{0, 9}, {29, 9}, {30, 7}, {89, 3}} {
		all := meter{every: 2, events: m.events, bytes: m.bytes, samples: slices.Clone(m.samples)}
		if events, bytes := all.behind(c.level); events != c.events || bytes != 100*c.events {
			t.Errorf("behind %d: %d events, %d bytes, want %d", c.level, events, bytes, c.events)
		}
	}
	m = meter{every: 1}
	for i := range uint64(samplesMax + 1) {
		m.add(i+1, 1, 1)
	}
	if len(m.samples) != samplesMax/2+1 || m.samples[1].seq != 3 || m.samples[samplesMax/2].seq != samplesMax+1 {
		t.Errorf("%d samples, second %+v", len(m.samples), m.samples[1])
	}
}

// bench is a replica that is live, to put tasks into.
type bench struct {
	*testing.T
	r   *Replica
	now Now
	seq uint64
	// silent: a tick does not mean that the log has moved.
	silent bool
}

// moves makes r hear of its log, which has no event to read.
func (r *Replica) moves(now Now) { r.still.heardAt = now.MS }

func newBench(t *testing.T, cfg Config) *bench {
	if cfg.WindowTasks == 0 {
		cfg = Config{
			Shards: 2, WindowTasks: 1000, WindowBytes: 1 << 20, CheckpointEveryMS: 1 << 50, PurgeEveryMS: 1 << 50, CarryRecords: 1 << 40, CarryBytes: 1 << 40,
		}
	}
	b := &bench{T: t, r: New(cfg, Checkpoint{}, time.Hour), now: Now{MS: scenarioStart}}
	b.step(Recovered{})
	return b
}

// step gives an input, and returns what the turn asks for.
func (b *bench) step(in Input) *Effects {
	b.Helper()
	fx := new(Effects)
	if _, tick := in.(Tick); tick && !b.silent {
		b.r.moves(b.now)
	}
	if !b.r.Step(in, b.now, fx) {
		b.Fatal("the lease is over")
	}
	b.r.Flush(b.now, fx)
	testkit.NoError(b, b.r.Check())
	return fx
}

func (b *bench) hungry(domain, tasklist string, present ...string) *Effects {
	fx := new(Effects)
	b.r.Hungry(domain, tasklist, present, b.now, fx)
	b.r.Flush(b.now, fx)
	return fx
}

func id(n int) ids.TaskID { return ids.NewTaskID(time.UnixMilli(scenarioStart), 0, uint64(n)) }

// submit reads a message of tasks, changed before.
func (b *bench) submit(change func(*taskstate.Task), numbers ...int) *Effects {
	b.Helper()
	b.seq++
	in := &Submits{Lane: 3, Seq: b.seq, At: b.now.MS, Bytes: 10}
	for _, n := range numbers {
		e := &Entry{Task: taskstate.Task{ID: id(n), Domain: "shop", Tasklist: "mail", Type: "send", Priority: 3, Policy: storyPolicy}}
		if change != nil {
			change(&e.Task)
		}
		in.Tasks = append(in.Tasks, e)
	}
	return b.step(in)
}

// typeSend is the limit of the type of most tasks.
var typeSend = taskstate.NewPath("type/send")

func (b *bench) event(kind taskstate.Kind, n int, fence ids.Token) *Effects {
	b.Helper()
	b.seq++
	return b.step(&Events{Seq: b.seq, At: b.now.MS, Bytes: 10, ReplyTo: "asker", Events: []taskstate.Event{
		{Kind: kind, ID: id(n), Fence: fence, Limits: typeSend, Worker: taskstate.NewWorker("w", "")},
	}})
}

func (b *bench) start(n int) *Effects {
	b.Helper()
	t := b.r.Get(id(n))
	return b.event(taskstate.Started, n, ids.Token{Position: t.Position, Version: t.Version + 1, Nonce: 5})
}

func (b *bench) finish(kind taskstate.Kind, n int) *Effects {
	b.Helper()
	return b.event(kind, n, b.r.Get(id(n)).Token())
}

// triggered are the tasks of the triggers, in their order.
func triggered(fx *Effects) (numbers []int) {
	for _, g := range fx.Triggers {
		for i := range len(g.Packed) / ids.TriggerBytes {
			task := ids.TriggerAt(g.Packed, i).ID
			numbers = append(numbers, int(task[14])<<8|int(task[15]))
		}
	}
	return numbers
}

func (b *bench) equal(what string, got, want []int) {
	b.Helper()
	if !slices.Equal(got, want) {
		b.Errorf("%s: %v, want %v", what, got, want)
	}
}
