package replica

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// confluenceCases is how many random logs one run reads; they take a few seconds.
// YARD_HISTORIES is another number: mutation tests run few for each mutant.
const confluenceCases = 4_000

// TestI3_Confluence reads random logs through random interleavings of their readers, with
// takeovers at random moments, and compares verdicts, end states and what was stored with
// those of one reader in log order (R10, R13, R14, R18, R20, R24, R25, R71).
//
// Known freedom: the verdict on a repeated outcome of a stay that has left memory is OK or
// STALE, depending on when the other stores were asked. A grab of a task that never was may be
// refused as STALE, since nothing is searched for it. What names another domain than its task's is refused
// with any code. Whether a task that is cancelled while
// it waits fires or not is up to the timer store; a story decides it once for all readers.
// A submit is repeated only while the first copy is in memory: the log itself
// refuses repetitions that come later. So a queue, which may be read after another owner has parked what
// is in it, has no copies where memory keeps next to nothing.
func TestI3_Confluence(t *testing.T) {
	randomLogs(t, confluenceCases, rand.Uint64()>>1, confluence)
}

// randomLogs reads logs of the seeds from base on, a tenth of them if tests are to be short, as many as YARD_HISTORIES says, or the one that YARD_SEED names.
func randomLogs(t *testing.T, cases, base uint64, read func(*testing.T, uint64)) {
	if s := os.Getenv("YARD_SEED"); s != "" {
		seed, err := strconv.ParseUint(s, 10, 64)
		testkit.NoError(t, err)
		read(t, seed)
		return
	}
	if testkit.Quick() {
		cases /= 10
	}
	if s := os.Getenv("YARD_HISTORIES"); s != "" {
		var err error
		if cases, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	for i := range cases {
		if read(t, base+i); t.Failed() {
			return
		}
	}
}

func confluence(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0))
	lives := rng.IntN(3)
	s := newStory(rng, 1+rng.IntN(4), 3+rng.IntN(25), lives == 0)
	w := newWorld(rng, s)
	var l *life
	defer func() {
		problem := recover()
		if problem == nil && l != nil {
			problem = compare(s, l)
		}
		if problem != nil {
			t.Errorf("YARD_SEED=%d: %v\n%s\n%s", seed, problem, s, strings.Join(w.trace, "\n"))
		}
	}()
	l = w.live(lives == 0)
	for range lives {
		l.run(rng.IntN(200))
		w.note("takeover from %+v", w.saved)
		l = w.live(false)
	}
	l.run(rng.IntN(200))
	l.finishAll()
}

// purged tells whether the log has forgotten what a queue has done, for once.
func (w *world) purged(m *message) bool {
	return !m.events && slices.ContainsFunc(w.saved.Queues, func(q QueueCursor) bool {
		return m.queue() == q.Queue && m.seq <= max(q.Ack, q.End)
	}) && w.rng.IntN(2) == 0
}

// live begins a life with a takeover.
func (w *world) live(repeats bool) *life {
	window := 1 + w.rng.IntN(4)
	if w.story != nil && w.story.keyed {
		window += w.rng.IntN(12)
	}
	cfg := Config{
		Shards: storyShards, WindowTasks: window, WindowBytes: 1 << 20, CheckpointEveryMS: 1, PurgeEveryMS: 1,
		CarryRecords: uint64(1 + w.rng.IntN(12)), CarryBytes: 1 << 20,
		Partitions: func(string, string) int { return []int{1, 2, 5}[w.rng.IntN(3)] }, // whenever somebody looks, another one
	}
	l := &life{world: w, r: New(cfg, w.saved, 0), now: Now{MS: 1}}
	if !repeats {
		l.r.gone.max = w.rng.IntN(4)
	}
	levels, events := w.saved.Ack, w.saved.Floor
	for _, m := range w.log[:w.visible] {
		for _, q := range w.saved.Queues {
			if !m.events && m.queue() == q.Queue && m.seq > q.Ack && m.seq <= q.Read {
				w.note("replay of a queue %s", m)
				l.step(m.inputOf())
			}
		}
		if m.events && m.seq <= events || !m.events && m.seq <= levels[m.lane] || w.purged(m) {
			continue
		}
		w.note("replay %s", m)
		l.step(m.input())
		if w.rng.IntN(4) == 0 {
			l.flush()
		}
	}
	in := Recovered{Parked: make(map[Stay]bool), Archived: make(Ends)}
	for stay, kept := range w.timer {
		if kept.seq > w.saved.TimerSeq {
			in.Parked[stay] = true
		}
	}
	for stay, kept := range w.archive {
		if kept.seq > w.saved.ArchiveSeq {
			in.Archived.Add(stay)
		}
	}
	for _, m := range w.log[:w.visible] {
		if m.events {
			in.Ends.Events = m.seq
		} else {
			in.Ends.Lanes[m.lane] = m.seq
		}
	}
	w.note("recovered %v %v", in.Parked, in.Archived)
	l.step(in)
	l.liveFrom = max(l.r.EventAt(), w.saved.Floor)
	return l
}

// run does so many random things.
func (l *life) run(n int) {
	for range n {
		l.now.MS++
		switch l.rng.IntN(17) {
		case 0, 1:
			if l.visible < len(l.log) {
				l.visible = min(len(l.log), l.visible+1+l.rng.IntN(6))
			}
		case 2, 3:
			l.readNext(l.next(true, 0, l.r.EventAt()))
		case 4, 5, 6, 7:
			lane := []ids.Lane{0, 1, 2, 4, ids.LaneKeyed}[l.rng.IntN(5)]
			if l.r.Room(lane) {
				l.readNext(l.next(false, lane, l.r.ReadLevels()[lane]))
			}
		case 8:
			l.flush()
		case 9:
			l.job(JobKind(l.rng.IntN(3)))
		case 10:
			l.ask()
		case 11:
			l.answer()
		case 12:
			l.r.moves(l.now)
			l.step(Tick{})
		case 13:
			l.checkpoint()
		case 14:
			l.lag()
		case 15, 16:
			if all := l.r.Readings(); len(all) > 0 {
				l.readQueue(all[l.rng.IntN(len(all))], false)
			}
		}
	}
}

// lag lets a domain lag behind a lane, as if it held that up.
func (l *life) lag() {
	at := Queue{[]ids.Lane{0, 1, 2, 4, ids.LaneKeyed}[l.rng.IntN(5)], domains[l.rng.IntN(2)]}
	if l.r.Lags(at) {
		return
	}
	l.note("%s lags behind lane %s", at.Domain, at.Lane)
	l.r.lag(at)
	l.check()
}

// readQueue reads the next message of a domain that lags, if there is room or anyway.
func (l *life) readQueue(q Reading, anyway bool) bool {
	m := l.nextOf(q.Queue, q.From-1)
	if m == nil || m.seq > l.r.ReadLevels()[q.Lane] || !anyway && !l.r.QueueRoom(q.Queue, m.seq) {
		return false
	}
	l.note("read of a queue %s", m)
	l.step(m.inputOf())
	return true
}

func (l *life) readNext(m *message) bool {
	if m == nil {
		return false
	}
	l.note("read %s", m)
	l.step(m.input())
	return true
}

// job carries one on: it is stored, and some time later reported.
func (l *life) job(kind JobKind) bool {
	switch {
	case !l.busy[kind]:
		return false
	case !l.written[kind]:
		l.write(kind)
	default:
		if kind == JobPark { // an owner may die between the two
			l.drop(l.spent)
			l.spent = nil
		}
		l.busy[kind], l.jobs[kind] = false, nil
		l.note("stored job %d", kind)
		l.step(Stored{Kind: kind, Seq: l.storedAt[kind]})
	}
	return true
}

// ask looks up a search, answer delivers what was found.
func (l *life) ask() bool {
	if len(l.searches) == 0 {
		return false
	}
	i := l.rng.IntN(len(l.searches))
	f := l.lookUp(l.searches[i])
	l.note("looked up %+v: taken %v, archived %v, waiting %v, unread %v", f.Search, f.Taken != nil, f.Archived != nil, f.Waiting != nil, f.Unread != nil)
	l.found = append(l.found, f)
	l.searches = slices.Delete(l.searches, i, i+1)
	return true
}

func (l *life) answer() bool {
	if len(l.found) == 0 {
		return false
	}
	i := l.rng.IntN(len(l.found))
	f := l.found[i]
	l.found = slices.Delete(l.found, i, i+1)
	l.note("found for %s cancel=%v", f.ID, f.Cancel)
	l.step(f)
	return true
}

// checkpoint saves what is to be saved; the answer may come later, or say that it failed.
func (l *life) checkpoint() bool {
	switch {
	case l.save == nil:
		return false
	case !l.sent:
		l.saved, l.sent = *l.save, true
	default:
		l.save = nil
		l.step(Saved{OK: l.rng.IntN(5) > 0})
	}
	return true
}

// finishAll goes on until nothing is left to do.
func (l *life) finishAll() {
	l.visible = len(l.log)
	for idle := 0; idle < 3; {
		l.now.MS += 1000
		did := l.readNext(l.next(true, 0, l.r.EventAt()))
		for lane := range ids.Lane(ids.Lanes) {
			did = l.readNext(l.next(false, lane, l.r.ReadLevels()[lane])) || did
		}
		for _, q := range l.r.Readings() {
			did = l.readQueue(q, true) || did
		}
		l.flush()
		for kind := range l.jobs {
			did = l.job(JobKind(kind)) || did
		}
		did = l.ask() || l.answer() || did
		l.checkpoint()
		l.r.moves(l.now)
		l.step(Tick{})
		if idle++; did {
			idle = 0
		}
		if l.now.MS > 10_000_000 {
			panic("it never ends")
		}
	}
}

// compare says in what the last life and the stores differ from the story.
func compare(s *story, l *life) any {
	for _, id := range s.order {
		m := s.tasks[id]
		want, got := dump(&m.Task), "nothing"
		e := l.r.tasks[id]
		switch {
		case m.State.Finished():
			if kept := l.archive[Stay{id, m.Parkings}]; kept != nil {
				got = dump(&kept.task)
			}
		case m.State == taskstate.Waiting:
			if kept := l.timer[Stay{id, m.Parkings}]; kept != nil {
				got = dump(&kept.task)
			}
		case e != nil && !e.left:
			got = dump(&e.Task)
			if e.State == taskstate.Ready && e.triggeredAt == 0 && !e.AwaitsTurn() {
				return fmt.Sprintf("%s is ready and was never triggered", id)
			}
		}
		if got == want && e != nil && m.State == taskstate.Running {
			got, want = got+grantOf(e.grantedBy()), want+grantOf(m.granted)
		}
		if got != want {
			return fmt.Sprintf("task %s ends as\n  %s\nthe model says\n  %s", id, got, want)
		}
	}
	return compareStores(s, l)
}

// grantOf is what may not have been received of a task.
func grantOf(g *Granted) string {
	if g == nil {
		return "\nreceived"
	}
	return fmt.Sprintf("\nperhaps not received: batch %d of epoch %d of shard %d", g.Request, g.Epoch, g.Shard)
}

func compareStores(s *story, l *life) any {
	for stay, kept := range l.archive {
		m := s.tasks[stay.ID]
		if before := kept.task.State == taskstate.Dead && stay.Parkings < m.Parkings; !before && !m.State.Finished() || kept.copies != 1 {
			return fmt.Sprintf("stay %v of a task, which is %s, was archived %d times", stay, m.State, kept.copies)
		}
	}
	for _, id := range s.order {
		m := s.tasks[id]
		letter := l.letters[id]
		if has := letter != nil; has != (m.State == taskstate.Dead) || has && dump(&letter.task) != dump(&m.Task) {
			return fmt.Sprintf("task %s is %s, and has a dead letter: %v", id, m.State, has)
		}
	}
	for stay, kept := range l.timer {
		if want := s.parked[stay]; want != dump(&kept.task) || kept.copies != 1 {
			return fmt.Sprintf("stay %v was parked %d times, as\n  %s\nthe model says\n  %s", stay, kept.copies, dump(&kept.task), want)
		}
	}
	if !maps.Equal(s.released, l.released) {
		return fmt.Sprintf("released are %d bookings, not %d", len(l.released), len(s.released))
	}
	for number, sh := range s.shards {
		if got := l.r.shards[uint32(number)]; sh.epoch > 0 && (got == nil || got.epoch() != sh.epoch) {
			return fmt.Sprintf("shard %d is at epoch %d, not at %+v", number, sh.epoch, got)
		}
	}
	if !l.r.Idle() && l.r.saving == nil || len(l.r.early.byID) > 0 || l.heldStays() > 0 || len(l.r.asking) > 0 || len(l.r.searching) > 0 {
		return fmt.Sprintf("it still waits: early %d, held %d, asking %d", len(l.r.early.byID), l.heldStays(), len(l.r.asking))
	}
	if problem := compareLines(s, l); problem != nil {
		return problem
	}
	return compareVerdicts(s, l)
}

func compareVerdicts(s *story, l *life) any {
	for _, m := range s.log {
		if !m.events || !m.asked {
			continue
		}
		codes, ok := l.answers[m.seq]
		if !ok {
			if m.seq > l.liveFrom {
				return fmt.Sprintf("message %d was never answered", m.seq)
			}
			continue
		}
		if len(codes) != len(m.want) && m.seq > l.liveFrom {
			return fmt.Sprintf("%d of %d events of message %d were answered", len(codes), len(m.want), m.seq)
		}
		for i, w := range m.want {
			if _, ok := codes[i]; !ok {
				continue
			}
			free := w.repeated && (codes[i] == fault.Stale || codes[i] == "") && (w.code == fault.Stale || w.code == "")
			forged := (m.list[i].Kind == taskstate.Started || m.list[i].Kind == taskstate.Lapse) && codes[i] == fault.Stale && w.code == fault.NotFound
			unsure := codes[i] == fault.Unknown && m.list[i].Kind.Changes() // another owner has decided it
			foreign := w.foreign && codes[i] != "" && w.code != ""
			_, carried := m.carried[i]
			if codes[i] != w.code && !free && !forged && !carried && !foreign && !unsure {
				return fmt.Sprintf("event %d of message %d got %q, the model says %q", i, m.seq, codes[i], w.code)
			}
		}
	}
	return nil
}

// String shows the log.
func (s *story) String() string {
	var b strings.Builder
	for _, m := range s.log {
		fmt.Fprintln(&b, m)
	}
	return b.String()
}

func (m *message) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d at %d", m.seq, m.at%10_000_000)
	if m.shard > 0 {
		fmt.Fprintf(&b, " | shard %d epoch %d batch %d delivered %d", m.shard, m.epoch, m.request, m.delivered)
	}
	for _, t := range m.tasks {
		fmt.Fprintf(&b, " | %s %d/%d due=%d", m.lane, t.ID[15], t.Parkings, t.DueAt%10_000_000)
	}
	for i, ev := range m.list {
		fmt.Fprintf(&b, " | %s %d pos=%d/%s v%d n%d %q", ev.Kind, ev.ID[15], ev.Fence.Position.Seq(), ev.Fence.Position.Lane(), ev.Fence.Version, ev.Fence.Nonce, ev.Domain)
		if c, ok := m.carried[i]; ok {
			fmt.Fprintf(&b, " asof=%d", c.asOf)
		}
		fmt.Fprintf(&b, " → %q", m.want[i].code)
	}
	return b.String()
}
