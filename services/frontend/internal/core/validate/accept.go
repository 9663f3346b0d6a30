package validate

import (
	"cmp"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/terms"
)

// Terms are what a submit is accepted under.
type Terms struct {
	// Domain has been checked and exists.
	Domain string
	// Now is when the tasks count as created.
	Now time.Time
	// Type returns the settings of a task type, or nil where it has none.
	Type func(name string) *yardv1.TaskType
	// Tasklist returns the settings of a tasklist, or nil where it has none.
	Tasklist func(name string) *yardv1.Tasklist
	// Trace reads a W3C trace context, and returns nil for one that is malformed:
	// the standard wants it ignored, not refused. nil = tasks have none of their own.
	Trace func(traceparent string) []byte
	// RequestTrace is what a task without a context of its own gets; nil = none.
	RequestTrace []byte
}

// Accepted is a submit as it goes into the log, but for the ids: they tell the
// partition, and that is chosen later.
type Accepted struct {
	// Records are the tasks in the order of the request, without ids.
	Records []*logv1.Record
	// Tasklist is that of all tasks; empty if they have several.
	Tasklist string
	// Lane is the highest priority among the tasks that are due, or Later, or Keyed.
	Lane ids.Lane
}

// Accept turns a request that Submit found good into records. It cannot fail.
func Accept(req *yardv1.SubmitRequest, terms Terms) Accepted {
	slab := make([]logv1.Record, len(req.Tasks)) // one allocation for all
	records := make([]*logv1.Record, len(req.Tasks))
	policies, defaults := policies{terms: terms}, priorities{terms: terms}
	for i, t := range req.Tasks {
		r := &slab[i]
		r.Domain, r.Type, r.Tasklist = terms.Domain, t.Type, t.Tasklist
		r.Tasklist = cmp.Or(r.Tasklist, req.Tasklist)
		r.Priority = t.Priority
		if r.Priority == 0 {
			r.Priority = defaults.of(r.Tasklist)
		}
		if t.Payload != nil {
			r.Payload, r.PayloadEncoding = t.Payload.Data, int32(t.Payload.Encoding)
		}
		p := policies.of(t)
		r.Policy, r.Expiry, r.Cost = p.policy, p.expiry, cost(t.Cost, p.cost)
		r.DueAtMs, r.DelayMs = dueAt(t.DelayMs, t.RunAtMs, terms.Now), t.DelayMs
		r.Trace = traceOf(t, terms)
		r.Headers, r.Group = storedHeaders(t.Headers), t.Group
		if t.UniqueKey != "" {
			r.Unique = &logv1.Unique{Key: t.UniqueKey, ForMs: t.UniqueForMs}
		}
		r.BatchId = t.BatchId
		if t.OrderKey != "" {
			r.Order = &logv1.Order{Key: t.OrderKey, Blocks: t.OrderPolicy == yardv1.OrderPolicy_ORDER_POLICY_BLOCK}
		}
		records[i] = r
	}
	return Gather(records)
}

// Gather is what goes together into the log: some tasks of a request, at least one.
func Gather(records []*logv1.Record) Accepted {
	return Accepted{Records: records, Tasklist: tasklist(records), Lane: lane(records)}
}

// priorities resolves that of tasks that name none. Most requests are for one tasklist.
type priorities struct {
	terms    Terms
	tasklist string
	priority int32
}

func (p *priorities) of(tasklist string) int32 {
	if tasklist != p.tasklist {
		p.tasklist, p.priority = tasklist, cmp.Or(p.terms.Tasklist(tasklist).GetPriority(), PriorityDefault)
	}
	return p.priority
}

// dueAt is when a task must run, at the earliest if it has a delay: that counts from when the log stores it. 0 = at once.
func dueAt(delayMs, runAtMs int64, now time.Time) int64 {
	if delayMs > 0 {
		return now.UnixMilli() + delayMs
	}
	if runAtMs <= now.UnixMilli()+1 {
		return 0
	}
	return runAtMs
}

func traceOf(t *yardv1.NewTask, terms Terms) []byte {
	if t.Traceparent != "" && terms.Trace != nil {
		if own := terms.Trace(t.Traceparent); own != nil {
			return own
		}
	}
	return terms.RequestTrace
}

func tasklist(records []*logv1.Record) string {
	for _, r := range records[1:] {
		if r.Tasklist != records[0].Tasklist {
			return ""
		}
	}
	return records[0].Tasklist
}

func lane(records []*logv1.Record) ids.Lane {
	if records[0].Order != nil {
		return ids.LaneKeyed // all of them have one
	}
	best := ids.LaneLater
	for _, r := range records {
		if r.DueAtMs == 0 && (best == ids.LaneLater || ids.Lane(r.Priority) < best) {
			best = ids.Lane(r.Priority)
		}
	}
	return best
}

// policies resolves what applies to each task of one request. Equal ones are
// one value, since a request of a thousand tasks mostly has one type.
type policies struct {
	terms Terms
	types []typePolicy
}

type typePolicy struct {
	name   string
	policy *logv1.Policy
	expiry *logv1.Expiry
	// cost is what the type says.
	cost int32
}

// typesKept bounds how many types of one request share their policies: beyond
// it, looking one up costs more than making one.
const typesKept = 16

func (p *policies) of(t *yardv1.NewTask) typePolicy {
	own := t.Retry != nil || t.StartToCloseMs != 0 || t.HeartbeatTimeoutMs != 0 || t.StartWithinMs != 0 || t.FinishWithinMs != 0
	if !own {
		for _, known := range p.types {
			if known.name == t.Type {
				return known
			}
		}
	}
	of := p.terms.Type(t.Type)
	found := typePolicy{t.Type, terms.Policy(t, of), Expiry(t, of), of.GetCost()}
	if !own && len(p.types) < typesKept {
		p.types = append(p.types, found)
	}
	return found
}

// cost is what records carry of it: 0 = 1.
func cost(own, typed int32) int32 {
	if n := cmp.Or(own, typed, 1); n > 1 {
		return n
	}
	return 0
}

// Expiry is the time that a task has, resolved as its policy is; nil = no limit.
func Expiry(t *yardv1.NewTask, of *yardv1.TaskType) *logv1.Expiry {
	x := &logv1.Expiry{
		StartWithinMs: cmp.Or(t.StartWithinMs, of.GetStartWithinMs()), FinishWithinMs: cmp.Or(t.FinishWithinMs, of.GetFinishWithinMs()),
	}
	if x.StartWithinMs == 0 && x.FinishWithinMs == 0 {
		return nil
	}
	return x
}
