package replica

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// liesCases is how many logs of a liar one run reads.
const liesCases = 1_000

// liar is the domain that submits other tasks under ids that it has used.
const liar = "depot"

// TestI11_ALiarHarmsOnlyItself: a tenant that does not count its tries can have several tasks of one id
// stored, in any lanes, alike or not. Whichever of them history takes, nothing halts, nothing waits forever but for tasks of its own, no room stays
// taken, and the tasks of others end as if it had not lied.
func TestI11_ALiarHarmsOnlyItself(t *testing.T) {
	randomLogs(t, liesCases, rand.Uint64()>>1, lies)
}

func lies(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 1))
	lives := rng.IntN(3)
	s := newStory(rng, 2+rng.IntN(5), 3+rng.IntN(25), false)
	s.lie()
	w := newWorld(rng, s)
	w.story = nil // a liar may have keys that the model knows nothing of
	var l *life
	defer func() {
		problem := recover()
		if problem == nil {
			s.believe(l)
			problem = compare(s, l)
		}
		if problem != nil {
			t.Errorf("YARD_SEED=%d: %v\n%s\n%s", seed, problem, s, strings.Join(w.trace, "\n"))
		}
	}()
	l = w.live(true)
	for range lives {
		l.run(rng.IntN(200))
		w.note("takeover from %+v", w.saved)
		l = w.live(false)
	}
	l.run(rng.IntN(200))
	l.finishAll()
}

// ofLies tells whether a check refuses that two tasks of one line of the liar have their turn. Owners need not agree which of its copies counts: one may
// have dropped that of the first task, and given the second its turn, while another one has carried it.
func ofLies(problem error) bool {
	return strings.HasPrefix(problem.Error(), "it is the turn of task ") && strings.Contains(problem.Error(), " of key {"+liar+" ")
}

// heldStays are those that wait for the stay before, but for a liar's whose stay before is here and has not ended: other owners have run another copy of it
// to its end, and this one has not.
func (l *life) heldStays() (n int) {
	for id, held := range l.r.held {
		e := l.r.tasks[id]
		own := l.story == nil && domainOf(id) == liar && e != nil && !e.left && e.State.Active() && held[0].Before.Same(e.Position)
		if !own {
			n++
		}
	}
	return n
}

// lie puts other tasks under the ids of the liar into the log, before and after the true ones.
func (s *story) lie() {
	for range 1 + s.rng.IntN(6) {
		i := s.rng.IntN(len(s.log))
		m := &message{seq: s.log[i].seq + seqGap/2, at: s.log[i].at, lane: []ids.Lane{ids.LaneLater, 1, 2, 4}[s.rng.IntN(4)]}
		if i+1 < len(s.log) && s.log[i+1].seq <= m.seq || m.seq == s.log[i].seq {
			continue
		}
		keyed := s.keyed && s.rng.IntN(2) == 0
		if keyed {
			m.lane, m.domain = ids.LaneKeyed, liar
		}
		for range 1 + s.rng.IntN(3) {
			id := s.order[s.rng.IntN(len(s.order))]
			if domainOf(id) != liar {
				continue
			}
			r := taskstate.Task{
				ID: id, Domain: liar, Tasklist: []string{"mail", "other"}[s.rng.IntN(2)], Type: "lie", Priority: int32(min(max(1, m.lane), ids.LaneLast)),
				Policy: &taskstate.Policy{MaxAttempts: 1, StartToCloseMS: 9_000}, Payload: taskstate.Blob{Data: []byte("another")},
			}
			if m.lane == ids.LaneLater || s.rng.IntN(3) == 0 {
				r.DueAt = m.at + 1 + s.rng.Int64N(60_000)
			}
			if keyed {
				o := s.orderOf()
				o.Key = "of lies" // the story grants attempts of its own keys as if there were no others in their lines
				r.Extra = &taskstate.Extra{Order: o}
			}
			m.tasks = append(m.tasks, r)
		}
		if len(m.tasks) == 0 {
			continue
		}
		if s.rng.IntN(2) == 0 {
			m.domain = liar
		}
		s.log = slices.Insert(s.log, i+1, m)
	}
}

// believe makes the story of the liar's tasks whatever l says.
func (s *story) believe(l *life) {
	lied := func(id ids.TaskID) bool { return domainOf(id) == liar }
	s.order = slices.DeleteFunc(s.order, lied)
	// A task of the liar may be stored twice over there, and wait there for a firing that the story has not.
	maps.DeleteFunc(l.archive, func(stay Stay, _ *stored) bool { return lied(stay.ID) })
	maps.DeleteFunc(l.timer, func(s Stay, _ *stored) bool { return lied(s.ID) })
	for _, released := range []map[string]bool{s.released, l.released} {
		maps.DeleteFunc(released, func(booking string, _ bool) bool { return lied(ids.TaskID([]byte(booking[:len(ids.TaskID{})]))) })
	}
	for _, m := range s.log {
		for i, w := range m.want {
			if code, ok := l.answers[m.seq][i]; ok && lied(m.list[i].ID) {
				w.code = code
			}
		}
	}
}

// TestAStayOfAnotherCopyHoldsUpNothing: a liar's task waits in the timer store, and another of its id lies in a backlog, which
// is read after a takeover. The stay that fires must not hold up the log until the other has ended: no one may run that.
func TestAStayOfAnotherCopyHoldsUpNothing(t *testing.T) {
	b := newBench(t, Config{})
	parked := ids.NewPosition(5, ids.LaneLater)
	b.r.lanes[ids.LaneLater].Skip(parked.Seq()) // an earlier owner has read and parked it
	b.submit(nil, 1)
	b.submit(func(t *taskstate.Task) { t.Parkings, t.Position = 1, parked }, 1)
	if active := b.r.lanes[3].Active(); active != 1 || len(b.r.held) > 0 {
		t.Errorf("%d stays are active, %d are held", active, len(b.r.held))
	}
}
