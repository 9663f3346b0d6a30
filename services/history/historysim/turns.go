package historysim

import "github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"

// turns are what an owner appends, as internal/turn does. Here each batch of a turn is a message of its own; they are stored together.
type turns struct {
	// requests wait for a turn, own is what the owner proposes.
	requests []*Message
	own      *Message
	// stored is a turn that is stored and not stepped through, last its last message.
	stored []*Message
	last   uint64
	// name is that of the last turn of this owner; busy: it is under way.
	name TurnName
	busy bool
}

// writer is an owner as its turns see it.
type writer interface {
	send(op *Op, done func(Outcome))
	until(op Op, done func(Outcome))
	finish(why string)
}

func (t *turns) idle() bool { return !t.busy && len(t.stored) == 0 }

// propose adds the owner's own events to the next turn.
func (t *turns) propose(own []replica.Proposal) {
	t.own = &Message{Event: true}
	for i := range own {
		p := &own[i]
		t.own.Events = append(t.own.Events, Event{
			Kind: p.Kind, ID: p.ID, Fence: p.Fence, Domain: p.Domain, Message: p.Message, Undelivered: p.Undelivered, NotAfter: p.NotAfter, SilentLease: p.SilentLease,
		})
		if p.Carried != nil {
			if t.own.Carried == nil {
				t.own.Carried = make(map[int]CarriedState)
			}
			t.own.Carried[i] = CarriedState{CopyTask(p.Carried), p.AsOf, p.Granted}
		}
	}
}

// begin appends what was proposed, and as many as pick says of what has been asked for, in a turn behind the last one.
func (t *turns) begin(w writer, pick func(n int) int, done func(proposed bool)) {
	if !t.idle() || t.own == nil && len(t.requests) == 0 {
		return
	}
	var turn []*Message
	n, proposed := pick(len(t.requests)+1), t.own != nil
	if proposed {
		turn, t.own = append(turn, t.own), nil
	} else {
		n = max(n, 1)
	}
	turn = append(turn, t.requests[:n]...)
	t.requests = t.requests[n:]
	t.name.Number++
	t.busy = true
	t.append(w, turn, func(out Outcome) {
		t.busy = false
		t.stored, t.last = out.Messages, out.Seq
		done(proposed)
	})
}

// append repeats a turn until it is stored. If it may be, or another one is there, the last turn tells.
func (t *turns) append(w writer, turn []*Message, done func(Outcome)) {
	w.send(&Op{Kind: AppendTurn, Turn: turn, Name: t.name, Expected: t.last}, func(out Outcome) {
		if out.Result == OK {
			done(out)
			return
		}
		w.until(Op{Kind: ReadLastTurn}, func(last Outcome) {
			switch {
			case last.LastTurn == t.name:
				done(last)
			case last.Seq == t.last:
				t.append(w, turn, done)
			default:
				w.finish("taken over")
			}
		})
	})
}

// claim appends the first turn of an epoch, so that no other owner appends any more.
func (t *turns) claim(w writer, epoch uint64, done func(seq uint64)) {
	t.name = TurnName{epoch, 1}
	w.until(Op{Kind: ReadLastTurn}, func(last Outcome) {
		claimed := func(out Outcome) {
			t.last = out.Seq
			done(out.Seq)
		}
		switch {
		case last.LastTurn.Epoch > epoch:
			w.finish("taken over")
			return
		case last.LastTurn == t.name: // its acknowledgement was lost
			claimed(last)
			return
		}
		w.send(&Op{Kind: AppendTurn, Turn: []*Message{{Event: true}}, Name: t.name, Expected: last.Seq}, func(out Outcome) {
			if out.Result == OK {
				claimed(out)
				return
			}
			t.claim(w, epoch, done)
		})
	})
}
