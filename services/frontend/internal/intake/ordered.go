package intake

import (
	"encoding/binary"
	"sync/atomic"

	"go.opentelemetry.io/otel/trace/noop"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/validate"

	core "github.com/yardmaster-io/yardmaster/services/frontend/internal/core/intake"
)

// Tasks with order keys go to the partitions of their keys (decision 0044). Those of one partition are a submission that is pinned to it: it is stored whole,
// and only searched for there. A request for several partitions is as many submissions, one in each: task ids name the partition, and each log knows the request's
// message id for itself.

// storeOrdered stores the tasks of s in the partitions of their order keys.
func (in *Intake) storeOrdered(s *submission) {
	all := in.byPartition(s)
	if len(all) == 1 {
		s.home, s.pinned = topology.OrderKeyPartition(s.call.Domain, s.accepted.Records[0].Order.Key, in.Partitioning), true
		in.store(s)
		return
	}
	if !s.Repeats() { // else the tasklists count each share, unless it is found stored; the quota counts all as one
		if s.over = in.admit(s); s.over != nil {
			in.refuse(s, s, core.End{Why: core.OverCap})
			return
		}
	}
	s.begin(core.First)
	s.results = make([]*yardv1.SubmitResult, s.tasks())
	shares, ends := make([]*submission, len(all)), make([]core.End, len(all))
	var open atomic.Int64
	open.Store(int64(len(all)))
	for k, where := range all {
		own := in.shareOf(s, where)
		shares[k] = own
		own.ended = func(end core.End) {
			if ends[k] = end; end.Kind == core.Stored {
				for n, r := range own.outcomes() {
					s.results[where[n]] = r
				}
			}
			if open.Add(-1) == 0 {
				in.join(s, ends, func(i int) *submission { return shares[i] }, func() { s.counted.resolve(false, 0) }) // the owners count them
			}
		}
	}
	for _, own := range shares {
		in.store(own)
	}
}

// byPartition are the places of the tasks of s, in the order of the request, by the partition of their keys.
func (in *Intake) byPartition(s *submission) (all [][]int) {
	at := map[int]int{}
	for i, r := range s.accepted.Records {
		p := topology.OrderKeyPartition(s.call.Domain, r.Order.Key, in.Partitioning)
		k, ok := at[p]
		if !ok {
			k = len(all)
			at[p], all = k, append(all, nil)
		}
		all[k] = append(all[k], i)
	}
	return all
}

// shareOf is a share as a submission of its own. How many tasks it has is part of its ids and of its message's, as it is of a request's: a repeat of other keys
// may have other shares, and is not answered for tasks that none has stored.
func (in *Intake) shareOf(s *submission, where []int) *submission {
	own := &submission{call: s.call, message: s.message, refusal: s.refusal, pinned: true, span: noop.Span{}}
	own.Terms = core.Terms{Made: s.Made, HasID: s.HasID, Tries: s.Tries, Closed: s.Closed, Counted: !s.Repeats()}
	own.seed = mix(s.seed, -len(where))
	binary.BigEndian.PutUint64(own.message[:], own.seed)
	for _, i := range where {
		own.accepted.Records = append(own.accepted.Records, s.accepted.Records[i])
	}
	own.accepted = validate.Gather(own.accepted.Records)
	own.home = topology.OrderKeyPartition(s.call.Domain, own.accepted.Records[0].Order.Key, in.Partitioning)
	own.place(own.home)
	own.weight, own.charge = max(1, s.weight*own.tasks()/s.tasks()), s.charge
	return own
}
