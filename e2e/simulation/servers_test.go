package simulation

import (
	"time"

	"github.com/yardmaster-io/yardmaster/services/history/historysim"
)

// proposal is an append that its leader has accepted, and that most of three servers do not have yet.
type proposal struct {
	p      *proc
	op     *historysim.Op
	sentAt time.Duration
	answer func(historysim.Outcome)
}

// expects reports whether an operation says what it follows, so that its stream refuses it behind anything else.
func expects(k historysim.OpKind) bool {
	return k == historysim.AppendTurn || k == historysim.AppendArchive || k == historysim.SaveCheckpoint
}

// isLast reports whether an operation follows the last message of its stream.
func (w *world) isLast(op *historysim.Op) bool {
	switch op.Kind {
	case historysim.AppendTurn:
		return op.Expected == w.lastEvent()
	case historysim.AppendArchive:
		return op.Expected == uint64(len(w.archive))
	default:
		return op.Revision == w.revision
	}
}

// propose is an append to three servers. Their leader compares as it accepts, and answers later. Meanwhile it refuses every other append, a copy of the first
// included, and a reader finds neither.
func (w *world) propose(a *proposal) {
	slot := &w.proposed[a.op.Kind]
	if *slot != nil || !w.isLast(a.op) {
		a.answer(historysim.Outcome{Result: historysim.Conflict})
		return
	}
	*slot = a
	lasts := w.dice.between(200*time.Microsecond, 2*time.Millisecond)
	if w.fault(threeServers, 60) {
		lasts = w.dice.upTo(300 * time.Millisecond)
	}
	w.after(lasts, func() {
		if *slot == a {
			*slot = nil
			a.p.finish(a.op, a.sentAt, a.answer)
		}
	})
}

// changeLeader has another server lead the streams. It stores what was accepted, or never had it, and sends no answer.
func (w *world) changeLeader() {
	for kind, a := range w.proposed {
		w.proposed[kind] = nil
		if a == nil {
			continue
		}
		kept := w.dice.chance(500)
		w.say("world", "has a new leader while a %v is in flight, kept: %v", a.op.Kind, kept)
		if kept {
			a.p.finish(a.op, a.sentAt, func(historysim.Outcome) {})
		}
	}
}
