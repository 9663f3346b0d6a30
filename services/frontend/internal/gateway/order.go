package gateway

import (
	"encoding/binary"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace/noop"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
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

// byPartition are the tasks of s by the partition of their keys, in the order of the request.
func (s *submission) byPartition(g *Gateway) (all []orderedPart) {
	at := map[int]int{}
	for i, r := range s.accepted.Records {
		p := topology.OrderKeyPartition(s.call.Domain, r.Order.Key, g.Partitioning)
		k, ok := at[p]
		if !ok {
			k = len(all)
			at[p], all = k, append(all, orderedPart{p: p})
		}
		all[k].where = append(all[k].where, i)
	}
	return all
}

// orderedPart is the tasks of a request for one partition, by their places in the request.
type orderedPart struct {
	p       int
	where   []int
	results []*yardv1.SubmitResult
	err     error
}

// storeParts stores each part of s, all at once, and answers s when the last one is known.
func (g *Gateway) storeParts(s *submission, all []orderedPart) {
	if !s.repeats() { // else each part is counted, unless it is found stored
		if err := g.admit(s); err != nil {
			g.metrics.submitsRefused.queue.Add(1)
			s.refuse(err)
			return
		}
	}
	began := time.Now()
	var open sync.WaitGroup
	open.Add(len(all))
	for k := range all {
		pt := &all[k]
		g.store(s.partOf(g, pt, func(m codec.Message, err error) {
			if pt.err = err; err == nil {
				pt.results = m.(*yardv1.SubmitResponse).Results
			}
			open.Done()
		}))
	}
	go func() { // each is answered by its deadline
		open.Wait()
		g.endParts(s, all, began)
	}()
}

// partOf is a part as a submission of its own. How many tasks it has is part of its ids and of its message's, as it is of a request's: a repeat of other keys
// may have other parts, and is not answered for tasks that none has stored.
func (s *submission) partOf(g *Gateway, pt *orderedPart, answer Answer) *submission {
	own := &submission{
		call: s.call, answer: answer, at: s.at, seed: s.seed, message: s.message, wait: -1, certain: true, span: noop.Span{},
		hasID: s.hasID, tries: s.tries, alone: s.alone, within: s.within, drained: s.drained, home: pt.p, pinned: true,
	}
	if !s.repeats() {
		own.held = held{by: g.queues} // counted as a whole
	}
	own.seed = mix(s.seed, -len(pt.where))
	binary.BigEndian.PutUint64(own.message[:], own.seed)
	for _, i := range pt.where {
		own.accepted.Records = append(own.accepted.Records, s.accepted.Records[i])
	}
	own.accepted = validate.Gather(own.accepted.Records)
	own.place(pt.p)
	own.weight = max(1, s.weight*own.tasks()/s.tasks())
	return own
}

// endParts answers s: all tasks are stored, or none is, or it is not known of all, or some are and a repeat stores the others.
func (g *Gateway) endParts(s *submission, all []orderedPart, began time.Time) {
	s.results = make([]*yardv1.SubmitResult, s.tasks())
	var refused error
	stored, unknown := 0, false
	for _, pt := range all {
		if pt.err != nil {
			refused = pt.err
			unknown = unknown || fault.CodeOf(pt.err) == fault.Unknown
			continue
		}
		stored++
		for k, i := range pt.where {
			s.results[i] = pt.results[k]
		}
	}
	switch {
	case stored == len(all):
		s.held.resolve(false, 0) // the owners count them
		g.traceParts(s, began)
		s.answer(&yardv1.SubmitResponse{Results: s.results, NowMs: s.nowMs()}, nil)
	case unknown:
		s.results = nil
		g.unknown(s)
	case stored > 0:
		s.results = nil
		g.metrics.unknown.Add(1)
		s.refuse(fault.New(fault.Unknown, "some of the tasks are stored, and some are not: repeat the request with its request_id; those that are not: %v", refused).After(awayRetryAfter))
	default:
		s.results = nil
		s.refuse(refused)
	}
}

// traceParts ends the spans of s, whose tasks are in several partitions.
func (g *Gateway) traceParts(s *submission, began time.Time) {
	if !g.Tracing.On() {
		return
	}
	s.in = make([]int, s.tasks())
	for i, r := range s.results {
		id, _ := ids.ParseTaskID(r.TaskId) // it is ours
		s.in[i] = id.Partition()
	}
	g.traceStored(s, began, time.Now())
}
