package simulation

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/historysim"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// letter is a dead letter in its stream.
type letter struct {
	seq  uint64
	task historysim.Task
}

// storeLetters keeps dead tasks, each in place of an earlier stay.
func (w *world) storeLetters(tasks []historysim.Task) {
	for i := range tasks {
		t := &tasks[i]
		if there := w.letters[t.ID]; there == nil || there.task.Parkings < t.Parkings {
			w.lastLetter++
			w.letters[t.ID] = &letter{seq: w.lastLetter, task: historysim.CopyTask(t)}
		}
	}
}

// dropLetters deletes letters.
func (w *world) dropLetters(all []historysim.Letter) {
	for _, l := range all {
		if there := w.letters[l.ID]; there != nil && there.seq <= l.Seq {
			delete(w.letters, l.ID)
		}
	}
}

func (w *world) askLetter(s historysim.Search) (out historysim.Outcome) {
	if there := w.letters[s.ID]; there != nil && (s.Domain == "" || s.Domain == there.task.Domain) {
		out.Task, out.Seq = &there.task, there.seq
	}
	return out
}

func (w *world) askArchive(s historysim.Search) (out historysim.Outcome) {
	if there := w.archived[s.ID]; there != nil && s.Domain == there.Domain {
		out.Task = there
	}
	return out
}

// ended tells whether the archive has the end of a task, and no redrive has brought it back since.
func (w *world) ended(id ids.TaskID) bool {
	t := w.archived[id]
	return t != nil && t.Parkings >= w.check.back[id]
}

// redrivesLast is for how long tasks die and are redriven when there are no more faults: much of the work is done then.
const redrivesLast = 20 * time.Second

// dies tells whether something happens by which tasks become dead letters, or come back.
func (w *world) dies(permille int) bool {
	return w.plan.has(redrives) && w.now < w.plan.length+redrivesLast && w.dice.chance(permille)
}

// redriveSome lets somebody bring a task back each time that it is dead, for a time.
func (w *world) redriveSome(id ids.TaskID) {
	if !w.dies(700) {
		return
	}
	left := 1 + w.dice.IntN(3)
	var look func()
	w.asking++
	look = func() {
		if left == 0 || !w.dies(1000) || w.archived[id] != nil && w.archived[id].State != historysim.Dead {
			w.asking--
			return
		}
		w.after(w.dice.upTo(2*time.Second), look)
		if w.letters[id] == nil && !w.dice.chance(5) {
			return
		}
		left--
		w.redrive(id, w.accepted[id].domain)
		if w.dice.chance(200) { // somebody else does so, too
			w.redrive(id, w.accepted[id].domain)
		}
		if w.fault(foreignCancels, 100) {
			w.redrive(id, rival)
		}
	}
	w.after(w.dice.upTo(10*time.Second), look)
}

// redrive asks for a task by the letter that is there; a caller of another domain finds none.
func (w *world) redrive(id ids.TaskID, by string) {
	w.requests++
	r := &historysim.Redrive{Request: w.requests}
	if l := w.letters[id]; l != nil && by != rival {
		r.Letter, r.Tasklist, r.Parkings = l.seq, l.task.Tasklist, l.task.Parkings
		if w.plan.has(moves) && w.dice.chance(300) {
			r.To = w.match.another(w.accepted[id]).tasklist
			w.moves(id, r.To)
		}
	}
	w.asking++
	c := &call{events: []historysim.Event{{Kind: historysim.Redrove, ID: id, Domain: by, Redrive: r, Message: "by " + by}}}
	over := false
	done := func() {
		if !over {
			over = true
			w.asking--
		}
	}
	c.answers = func(int, *historysim.Verdict) { done() }
	w.askers.ask("operator", c)
	w.after(givenUpAfter, done)
}

// givenUpAfter is when no try of a call is under way any more.
const givenUpAfter = triesMost * 5 * time.Second

// searched tells whether an event may be answered with UNKNOWN by an owner that does not know what another one has decided.
func searched(e *historysim.Event) bool {
	return e.Kind.Changes() || e.Kind == historysim.Redrove
}

// broughtBack names a letter by which a task came back.
type broughtBack struct {
	id     ids.TaskID
	letter uint64
}

// redriveConfirmed holds that a letter brings its task back once, for a caller of its domain.
func (c *checker) redriveConfirmed(e *historysim.Event) {
	r, name := e.Redrive, c.w.name(e.ID)
	if e.Domain == rival {
		c.w.violated("I14: %s is redriven by another domain", name)
		return
	}
	if r.Letter == 0 {
		c.w.violated("%s is redriven by request %d, which has no letter", name, r.Request)
		return
	}
	key := broughtBack{e.ID, r.Letter}
	if other, ok := c.backBy[key]; ok && other != r.Request {
		c.w.violated("letter %d of %s is redriven by request %d, and by request %d", r.Letter, name, other, r.Request)
	}
	c.backBy[key] = r.Request
	c.cameBack[historysim.Stay{ID: e.ID, Parkings: r.Parkings}] = true
	c.back[e.ID] = max(c.back[e.ID], r.Parkings+1)
}

func (c *checker) redriveRefused(e *historysim.Event, v *historysim.Verdict) {
	c.notBack++
	switch {
	case e.Domain == rival && v.Code != fault.NotFound:
		c.w.violated("I14: a foreign redrive of %s gets %s", c.w.name(e.ID), v.Code)
	case e.Domain != rival && v.Code != fault.FailedPrecondition && v.Code != fault.Unknown:
		c.w.violated("a redrive of %s gets %s", c.w.name(e.ID), v.Code)
	}
}

// follows tells whether an end is that of a later life than another one.
func (c *checker) follows(t, first *historysim.Task) bool {
	return first.State == historysim.Dead && t.Parkings > first.Parkings && t.Redriven().Count > first.Redriven().Count
}

// allBack tells whether all tasks that were redriven have ended again.
func (c *checker) allBack() bool {
	for id := range c.back {
		if !c.w.ended(id) {
			return false
		}
	}
	return true
}

// lettersHold holds that a dead task has its letter, and that a task came back once for each stay of which a redrive was confirmed. An owner that was
// paused may store the letter of a stay late, behind a redrive of it. Another redrive by that letter is refused, or confirmed while the stay that the first
// one made waits to be admitted.
func (c *checker) lettersHold(t *historysim.Task) {
	name, l := c.w.name(t.ID), c.w.letters[t.ID]
	if t.State == historysim.Dead && (l == nil || l.task.Parkings != t.Parkings) {
		c.w.violated("%s is dead, and has no letter of its stay: %+v", name, l)
	}
	confirmed := 0
	for stay := range c.cameBack {
		if stay.ID == t.ID {
			confirmed++
		}
	}
	if count := int(t.Redriven().Count); count < confirmed {
		c.w.violated("%s has come back %d times, and %d redrives were confirmed", name, count, confirmed)
	}
}

// TestDeadTasksComeBack: what the runs are to show happens in those that have redrives.
func TestDeadTasksComeBack(t *testing.T) {
	back, twice, refused := 0, 0, 0
	testkit.Slow(t, "simulates many runs")
	for seed := range uint64(80) {
		p := planOf(seed)
		if !p.has(redrives) {
			continue
		}
		w := newWorld(p, false)
		if broken := w.run(); broken != "" {
			t.Errorf("seed %d: %s", seed, broken)
		}
		for _, part := range w.parts {
			refused += part.check.notBack
			for _, task := range part.archived {
				if n := task.Redriven().Count; n > 0 {
					back++
					if n > 1 {
						twice++
					}
				}
			}
		}
	}
	t.Logf("%d tasks have come back, %d of them twice or more, %d redrives were refused", back, twice, refused)
	if back < 20 || twice < 5 || refused < 20 {
		t.Errorf("%d tasks have come back, %d of them twice or more, %d redrives were refused: too few", back, twice, refused)
	}
}

// archived holds I1 and I3: each task ends one way, unless it was dead and came back.
func (c *checker) archived(t *historysim.Task) {
	name := c.w.name(t.ID)
	if first := c.w.archived[t.ID]; first != nil && !c.follows(t, first) {
		c.w.violated("I3: %s is archived twice, %v and %v", name, first.State, t.State)
	}
	if _, ok := c.w.accepted[t.ID]; !ok {
		c.w.violated("%s is archived and was never submitted", name)
	}
	if !t.State.Finished() {
		c.w.violated("%s is archived, and it is %v", name, t.State)
	}
	c.w.match.check.archived(c.w, t)
}
