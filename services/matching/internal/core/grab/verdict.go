package grab

import (
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
)

// Outcome is what history has decided.
type Outcome[L any] struct {
	Ends  []End[L]
	Stops []Stopped
	// Superseded: a newer owner serves the shard.
	Superseded bool
}

// Decide applies history's answer to one batch, or to a part of it.
func (s *Lanes[L]) Decide(v *Verdicts) (out Outcome[L]) {
	if v.Partition < 0 || v.Partition >= len(s.all) {
		return out
	}
	l := s.all[v.Partition]
	l.heardAt = s.now
	b := l.find(v.Batch)
	if b == nil {
		return out // repeated
	}
	if len(b.grabs) > 0 {
		out.Ends = make([]End[L], 0, len(v.All))
	}
	for i := range v.All {
		if v.All[i].Fenced {
			out.Superseded = true
			return out
		}
		switch at := v.First + i; {
		case b.out.Fence:
			s.applyFence(b, &v.All[i])
		case at < 0:
		case at < len(b.grabs):
			if !b.grabs[at].decided {
				out.Ends = append(out.Ends, s.decide(b, at, &v.All[i]))
			}
		case at < len(b.backs):
			out.Ends = s.handedBack(b, at, &v.All[i], out.Ends)
		case at < len(b.stops):
			if st := &b.stops[at]; !st.done {
				st.done = true
				b.left--
				out.Stops = append(out.Stops, Stopped{*st, fault.Code(v.All[i].Refused)})
			}
		}
	}
	if b.left == 0 {
		l.close(b, s.now)
		if len(b.grabs) > 0 {
			s.out.Decided = append(s.out.Decided, s.now-b.firstAt)
		}
	}
	return out
}

// applyFence opens the way to a partition: nothing of an older owner follows.
func (s *Lanes[L]) applyFence(b *batch[L], v *Verdict) {
	if v.Refused != "" || b.left == 0 {
		return // it is sent again
	}
	b.left = 0
	b.lane.open = true
	if !s.fenced {
		s.fenced, s.fencedAt = true, s.now
	}
}

// decide applies one verdict about a grab. If it was refused, but may be granted another time, and an earlier copy of it may have been
// granted, it is handed back: then it is known.
func (s *Lanes[L]) decide(b *batch[L], i int, v *Verdict) End[L] {
	r := &b.grabs[i]
	r.decided = true
	b.left--
	b.lane.undecided--
	if len(v.Trace) > 0 {
		s.traced(b, r, v)
	}
	code := fault.Code(v.Refused)
	r.full = code == fault.ResourceExhausted
	end := End[L]{Request: *r, Detach: !r.detached, Over: true}
	if v.Refused == "" {
		s.counts.Granted++
		b.granted++
		b.unconfirmed++
		end.Granted, end.Grant, end.DeadlineMS = true, b.grant(i, v.Task), v.DeadlineMS
		return end
	}
	s.counts.GrabsRefused++
	passes := passes(code)
	if passes && b.copies > 1 {
		b.unconfirmed++
		b.lane.handBacks = append(b.lane.handBacks, handBack[L]{Grant: b.grant(i, nil), confirms: true, unsure: r})
		return end
	}
	if passes {
		s.last.Forget(r.Trigger)
	}
	end.Free, end.Again = true, r.full
	return end
}

// traced reports a grab of a traced task that was decided.
func (s *Lanes[L]) traced(b *batch[L], r *Request[L], v *Verdict) {
	var delays []limit.Delay
	if v.ReadyMS > 0 {
		delays = r.From.Limits.Delays(r.From.Column, s.now)
	}
	s.out.Traced = append(s.out.Traced, Traced{
		Trace: v.Trace, Domain: r.From.Domain, Tasklist: r.From.Name, Type: r.From.Type,
		ID: r.Trigger.ID, Partition: b.lane.partition, Code: v.Refused,
		ReadyMS: v.ReadyMS, Polled: r.Poll.Since, Matched: r.From.At, Sent: b.firstAt, Decided: s.now,
		Delays: delays,
	})
}
