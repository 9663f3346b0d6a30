package answer

import "github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"

// Answers are those of an owner that are not complete. The verdicts that a turn decides go at its end. The others rest on what other stores said, or on
// an admission that is not stored, and a newer owner may have claimed the log meanwhile, and decide otherwise. So each of them goes once a turn is stored
// that began after it: then no newer owner had claimed the log before (the read index of Raft, Ongaro 2014, section 6.4).
type Answers struct {
	// outside: the step under way is not a turn.
	outside bool
	// waiting go with the next turn that begins, riding with the one under way.
	waiting, riding []conclusion
	// partly are those of which more has become known.
	partly []*Answer
}

// conclusion is the verdict on event i of a message.
type conclusion struct {
	of *Answer
	i  int
	v  taskstate.Verdict
}

// Step says that a step begins: a turn, or another one.
func (all *Answers) Step(turn bool) { all.outside = !turn }

// Conclude gives the event at i of a message its verdict, and adds the answer to out if that is complete.
func (all *Answers) Conclude(a *Answer, i int, v taskstate.Verdict, out *[]*Answer) {
	if all.outside {
		all.waiting = append(all.waiting, conclusion{a, i, v})
		return
	}
	all.say(conclusion{a, i, v}, out)
}

func (all *Answers) say(c conclusion, out *[]*Answer) {
	c.of.set(c.i, c.v)
	switch {
	case c.of.at != nil:
		all.Partly(c.of)
	case c.of.left == 0:
		*out = append(*out, c.of)
	}
}

// Partly has what is known of a answered at the end of the flush.
func (all *Answers) Partly(a *Answer) {
	if !a.queued {
		a.queued = true
		all.partly = append(all.partly, a)
	}
}

// Waiting reports whether conclusions wait for a turn to begin.
func (all *Answers) Waiting() bool { return len(all.waiting) > 0 }

// Began says that a turn begins: it proves all conclusions so far.
func (all *Answers) Began() {
	all.riding, all.waiting = append(all.riding, all.waiting...), nil
}

// Stored says that the turn under way is stored.
func (all *Answers) Stored(out *[]*Answer) {
	for _, c := range all.riding {
		all.say(c, out)
	}
	all.riding = nil
}

// Refused says that the turn under way never will be stored.
func (all *Answers) Refused() { all.waiting, all.riding = append(all.riding, all.waiting...), nil }

// Flush adds to out what has become known of the messages of which some verdicts wait.
func (all *Answers) Flush(out *[]*Answer) {
	for _, a := range all.partly {
		a.queued = false
		if a.left > 0 || a.at != nil { // else all of it has been answered at once
			*out = append(*out, a.split()...)
		}
	}
	clear(all.partly)
	all.partly = all.partly[:0]
}
