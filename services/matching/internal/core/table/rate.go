package table

import (
	"math"
	"slices"
	"time"
)

// rate is what is kept of one rate for all shards.
type rate struct {
	// nextUS is the theoretical arrival time of the next start, Unix µs.
	nextUS float64
	// debtUS is the interval at which a debt of more than a burst is paid off; 0 = there is none.
	debtUS float64
	// line are the shards that wait for starts, in their order. There is one only while some trigger needs several.
	line []claim
}

// claim is a shard in the line of a rate.
type claim struct {
	shard int
	// need is how many starts its first trigger waits for.
	need int
	// until is when it leaves unless it shows itself, Unix ms.
	until int64
}

// rated is one Stance on a rate while its call is carried out.
type rated struct {
	Stance
	rate  *rate
	shard int
	// nowUS is the instant, nextUS as in rate; changed: it differs from that of rate already before anything starts.
	nowUS, nextUS float64
	changed       bool
	// free is how many starts there are, ahead how many of them are for shards before this one in the line, used those that were taken.
	free, ahead, used int
	// need is how many starts the first trigger needs that was left; kept: the rest is for it, and nothing comes after it.
	need int
	kept bool
	// beyond counts what one in shadow would have held up.
	beyond int
}

func newRate() *rate { return &rate{} }

// stand is how a rate stands when a call begins, at an instant, Unix µs.
func (r *rate) stand(c *Call, s Stance, nowUS int64) stand {
	st := &rated{Stance: s, rate: r, shard: c.Shard, nowUS: float64(nowUS), nextUS: r.nextUS}
	st.nextUS = max(st.nextUS, st.nowUS)
	every, debt := s.Rate.EveryUS, s.Rate.Burst
	if r.debtUS > 0 { // so many starts, at the rate as it is now
		if st.changed = r.debtUS != every; st.changed {
			st.nextUS = st.nowUS + (st.nextUS-st.nowUS)*every/r.debtUS
		}
		debt = max(debt, CostMax)
	}
	// At the latest it is that of what was started just now: the rate may have been slower, or the clock been ahead.
	st.nextUS = min(st.nextUS, st.nowUS+float64(debt)*every)
	if s.Unused > 0 && !s.Shadow {
		st.nextUS, st.changed = max(st.nowUS, st.nextUS-float64(s.Unused)*every), true
	}
	st.free = st.rest()
	r.line = slices.DeleteFunc(r.line, func(w claim) bool { return w.until <= nowUS/1000 })
	for _, w := range r.line {
		if w.shard == c.Shard || s.Shadow {
			break
		}
		st.ahead += w.need
	}
	return stand{Stance: s, rated: st}
}

// rest is how many starts there are.
func (r *rated) rest() int {
	return max(0, int(math.Floor(float64(r.Rate.Burst)-(r.nextUS-r.nowUS)/r.Rate.EveryUS))) // at rest exactly a burst
}

// room is how many starts the shard may use.
func (r *rated) room() int {
	if r.kept {
		return 0
	}
	return max(0, r.free-r.ahead-r.used)
}

// fits is how many triggers of a cost may start. One that costs more than the burst needs all of that; the rest is a debt.
func (r *rated) fits(cost int) int {
	room := r.room()
	if room < min(cost, r.Rate.Burst) {
		return 0
	}
	return max(1, room/cost)
}

// keep has what there is kept for a trigger of a cost whose turn it is.
func (r *rated) keep(cost int) {
	r.kept = true
	r.lack(cost)
}

// lack notes that a trigger of a cost was left.
func (r *rated) lack(cost int) {
	if r.need == 0 {
		r.need = min(cost, r.Rate.Burst)
	}
}

// start uses the starts of n triggers. A trigger that a rate in shadow would have held up uses up nothing of it.
func (r *rated) start(n, cost int) {
	if r.Shadow {
		fits := min(n, r.fits(cost))
		r.beyond += n - fits
		n = fits
	}
	r.used += n * cost
}

// finish notes what has started, gives the shard its place in the line if it is short, and tells when the next attempt may start.
func (r *rated) finish(short bool) LimitState {
	every, burst := r.Rate.EveryUS, float64(r.Rate.Burst)
	r.nextUS += float64(r.used) * every
	if r.used > 0 || r.changed || r.nextUS < r.rate.nextUS {
		r.rate.nextUS, r.rate.debtUS = r.nextUS, 0
		if r.nextUS-r.nowUS > burst*every {
			r.rate.debtUS = every
		}
	}
	waits := r.queue(short && !r.Shadow)
	need := max(r.need, 1)
	if r.Shadow || r.rest()-r.ahead >= need {
		return LimitState{Beyond: r.beyond, Waits: waits}
	}
	after := math.Ceil(r.nextUS - r.nowUS + float64(r.ahead+need)*every - burst*every)
	return LimitState{After: time.Duration(max(0, after)) * time.Microsecond, Waits: waits}
}

// queue gives the shard its place in the line: who was served goes behind the others. It returns whether it has one.
func (r *rated) queue(short bool) bool {
	l := r.rate
	at := slices.IndexFunc(l.line, func(w claim) bool { return w.shard == r.shard })
	if at >= 0 && (!short || r.used > 0) {
		l.line = slices.Delete(l.line, at, at+1)
		at = -1
	}
	w := claim{shard: r.shard, need: r.need, until: int64(r.nowUS)/1000 + LineStale.Milliseconds()}
	switch {
	case !short:
		return false
	case at >= 0:
		l.line[at] = w
	case r.need > 1 || len(l.line) > 0:
		l.line = append(l.line, w)
	default:
		return false
	}
	return true
}
