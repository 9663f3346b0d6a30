package gateway

import (
	"encoding/binary"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace/noop"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/validate"
)

// Tasks with order keys go to the partitions of their keys (decision 0044). Those of one partition are a submission that is pinned to it: it is stored whole,
// and only looked for there. A request for several partitions is as many submissions, one in each: task ids tell the partition, and each log knows the request's
// message id for itself.

func (s *submission) ordered() bool { return s.accepted.Records[0].Order != nil }

// submitOrdered stores the tasks of s in the partitions of their order keys.
func (g *Gateway) submitOrdered(s *submission) {
	if all := s.byPartition(g); len(all) > 1 {
		g.storeParts(s, all)
		return
	}
	s.home, s.pinned = topology.OrderKeyPartition(s.call.Domain, s.accepted.Records[0].Order.Key, g.Partitioning), true
	g.store(s)
}

// byPartition are the places of the tasks of s, in the order of the request, by the partition of their keys.
func (s *submission) byPartition(g *Gateway) (all [][]int) {
	at := map[int]int{}
	for i, r := range s.accepted.Records {
		p := topology.OrderKeyPartition(s.call.Domain, r.Order.Key, g.Partitioning)
		k, ok := at[p]
		if !ok {
			k = len(all)
			at[p], all = k, append(all, nil)
		}
		all[k] = append(all[k], i)
	}
	return all
}

// storeParts stores each part of s, all at once, and answers s when the last one is known.
func (g *Gateway) storeParts(s *submission, all [][]int) {
	if !s.repeats() { // else the tasklists count each part, unless it is found stored; the quota counts all as one
		if err := g.admit(s); err != nil {
			g.metrics.submitsRefused.full(err)
			s.refuse(err)
			return
		}
	}
	began := time.Now()
	s.results = make([]*yardv1.SubmitResult, s.tasks())
	parts, errs := make([]*submission, len(all)), make([]error, len(all))
	var open sync.WaitGroup
	open.Add(len(all))
	for k, where := range all {
		parts[k] = s.partOf(g, where, func(m codec.Message, err error) {
			defer open.Done()
			if errs[k] = err; err != nil {
				return
			}
			for n, r := range m.(*yardv1.SubmitResponse).Results {
				s.results[where[n]] = r
			}
		})
	}
	for _, own := range parts {
		g.store(own)
	}
	go func() { // each is answered by its deadline
		open.Wait()
		g.endParts(s, parts, errs, began)
	}()
}

// partOf is a part as a submission of its own. How many tasks it has is part of its ids and of its message's, as it is of a request's: a repeat of other keys
// may have other parts, and is not answered for tasks that none has stored.
func (s *submission) partOf(g *Gateway, where []int, answer Answer) *submission {
	own := &submission{
		call: s.call, answer: answer, at: s.at, seed: s.seed, message: s.message, waitFor: waitFor{wait: -1}, certain: true, span: noop.Span{},
		hasID: s.hasID, tries: s.tries, alone: s.alone, within: s.within, refusal: s.refusal, closed: s.closed, pinned: true,
	}
	if !s.repeats() {
		own.held = held{by: g.queues} // counted as a whole
	}
	own.seed = mix(s.seed, -len(where))
	binary.BigEndian.PutUint64(own.message[:], own.seed)
	for _, i := range where {
		own.accepted.Records = append(own.accepted.Records, s.accepted.Records[i])
	}
	own.accepted = validate.Gather(own.accepted.Records)
	own.home = topology.OrderKeyPartition(s.call.Domain, own.accepted.Records[0].Order.Key, g.Partitioning)
	own.place(own.home)
	own.weight, own.charge = max(1, s.weight*own.tasks()/s.tasks()), s.charge
	return own
}

// endParts answers s: what became of all tasks is known, or not of all, or some are stored and a repeat stores the others.
func (g *Gateway) endParts(s *submission, parts []*submission, errs []error, began time.Time) {
	var refused error
	stored, unknown, forGood := 0, false, true
	for k, err := range errs {
		if err == nil {
			stored++
			continue
		}
		refused = err
		unknown = unknown || fault.CodeOf(err) == fault.Unknown
		forGood = forGood && parts[k].refusedForGood(err)
	}
	answer := func() {
		s.held.resolve(false, 0) // the owners count them
		g.answerSubmit(s, began, time.Now())
	}
	switch {
	case refused == nil:
		answer()
	case forGood:
		s.refuseRest(refused, answer)
	case unknown:
		g.unknown(s)
	case stored > 0:
		g.metrics.unknown.Add(1)
		s.refuse(fault.New(fault.Unknown, "some of the tasks are stored, and some are not: repeat the request with its request_id; those that are not: %v", refused).After(awayRetryAfter))
	default:
		s.refuse(refused)
	}
}

// refusedForGood reports whether an answer to s says that no try of it is stored, nor will be.
func (s *submission) refusedForGood(err error) bool {
	return s.closed && errors.Is(err, s.refusal) || fault.From(err).Detail[fault.DetailNowMs] != ""
}
