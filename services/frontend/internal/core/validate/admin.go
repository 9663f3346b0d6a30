package validate

import (
	"cmp"
	"math"
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
)

// PutDomain checks a domains.put and fills in the default retention, so that
// every reader of the stored domain sees the same.
func PutDomain(req *yardv1.PutDomainRequest) error {
	d := req.Domain
	if d == nil {
		return invalid("/domain", "is missing")
	}
	d.RetentionMs = cmp.Or(d.RetentionMs, ms(RetentionDefault))
	return firstError(
		domainName("/domain/name", d.Name),
		text("/domain/description", d.Description, DescriptionBytesMax),
		between("/domain/retention_ms", d.RetentionMs, ms(RetentionMin), ms(RetentionMax)),
		between("/domain/max_concurrency", d.MaxConcurrency, 0, ConcurrencyMax),
		between("/domain/max_concurrency_per_group", d.MaxConcurrencyPerGroup, 0, ConcurrencyMax),
		rate("/domain/rate", d.Rate),
		optional("/domain/dead_letters_max_age_ms", d.DeadLettersMaxAgeMs, ms(DeadLettersAgeMin), ms(AheadMax)),
		optional("/domain/dead_letters_max", d.DeadLettersMax, 1, DeadLettersMax),
		optional("/domain/weight", d.Weight, 1, TurnsMax),
		optional("/domain/full_weight_tasks_per_s", d.FullWeightTasksPerS, 1, SubmitTasksMax),
		domainEvents(d),
		traceRatio("/domain/trace_ratio", d.TraceRatio),
		optional("/domain/quota/submit_tasks_per_s", d.GetQuota().GetSubmitTasksPerS(), 1, SubmitTasksMax),
		optional("/domain/quota/submit_bytes_per_s", d.GetQuota().GetSubmitBytesPerS(), SubmitBytesMin, SubmitBytesMax),
		optional("/domain/quota/open_polls", d.GetQuota().GetOpenPolls(), 1, OpenPollsMax),
		optional("/domain/quota/waiting_tasks", d.GetQuota().GetWaitingTasks(), 1, WaitingTasksMax),
		optional("/domain/quota/stored_bytes", d.GetQuota().GetStoredBytes(), StoredBytesMin, StoredBytesMax),
		revision("/domain/revision", d.Revision),
	)
}

// domainEvents checks when tasks of a domain are late and stuck: only its events say so.
func domainEvents(d *yardv1.Domain) error {
	const late, stuck = "/domain/late_after_ms", "/domain/stuck_after_ms"
	const off = "needs events: set events to true, or this to 0"
	switch {
	case d.LateAfterMs != 0 && !d.Events:
		return invalid(late, off)
	case d.StuckAfterMs != 0 && !d.Events:
		return invalid(stuck, off)
	}
	return firstError(
		optional(late, d.LateAfterMs, ms(SlowAfterMin), ms(AheadMax)),
		optional(stuck, d.StuckAfterMs, ms(SlowAfterMin), ms(AheadMax)),
	)
}

// domainName checks the name of a domain in a field.
func domainName(path, s string) error {
	if err := name(path, s); err != nil {
		return err
	}
	if s == topology.ReservedDomain {
		return invalid(path, "%q is reserved", s)
	}
	return nil
}

// PutType checks a types.put.
func PutType(req *yardv1.PutTypeRequest) error {
	t := req.Type
	if t == nil {
		return invalid("/type", "is missing")
	}
	return firstError(
		typeName("/type/name", t.Name),
		retry("/type/retry", t.Retry),
		timeouts("/type", t.StartToCloseMs, t.HeartbeatTimeoutMs),
		expiry("/type", t.StartWithinMs, t.FinishWithinMs),
		between("/type/max_concurrency", t.MaxConcurrency, 0, ConcurrencyMax),
		between("/type/max_concurrency_per_group", t.MaxConcurrencyPerGroup, 0, ConcurrencyMax),
		rate("/type/rate", t.Rate),
		optional("/type/cost", t.Cost, 1, CostMax),
		optional("/type/completed_retention_ms", t.CompletedRetentionMs, ms(RetentionMin), ms(RetentionMax)),
		optional("/type/stuck_after_ms", t.StuckAfterMs, ms(SlowAfterMin), ms(AheadMax)),
		limitNames(t.Limits),
		revision("/type/revision", t.Revision),
	)
}

// limitNames checks the limits that a type shares with others.
func limitNames(limits []string) error {
	if len(limits) > LimitsOfTypeMax {
		return invalid("/type/limits", "holds %d limits, at most %d are allowed", len(limits), LimitsOfTypeMax)
	}
	for i, l := range limits {
		path := at("/type/limits", i)
		if err := name(path, l); err != nil {
			return err
		}
		if slices.Contains(limits[:i], l) {
			return invalid(path, "names the limit %q a second time", l)
		}
	}
	return nil
}

// PutTasklist checks a tasklists.put.
func PutTasklist(req *yardv1.PutTasklistRequest) error {
	l := req.Tasklist
	if l == nil {
		return invalid("/tasklist", "is missing")
	}
	return firstError(
		name("/tasklist/name", l.Name),
		text("/tasklist/description", l.Description, DescriptionBytesMax),
		optional("/tasklist/priority", l.Priority, PriorityFirst, PriorityLast),
		between("/tasklist/max_concurrency", l.MaxConcurrency, 0, ConcurrencyMax),
		between("/tasklist/max_concurrency_per_group", l.MaxConcurrencyPerGroup, 0, ConcurrencyMax),
		rate("/tasklist/rate", l.Rate),
		between("/tasklist/max_queued", l.MaxQueued, 0, QueuedMax),
		between("/tasklist/max_queued_per_group", l.MaxQueuedPerGroup, 0, QueuedMax),
		between("/tasklist/partitions", l.Partitions, 0, ids.PartitionsMax),
		optional("/tasklist/partitions_max", l.PartitionsMax, max(2, l.Partitions), ids.PartitionsMax),
		revision("/tasklist/revision", l.Revision),
	)
}

// PutLimit checks a limits.put.
func PutLimit(req *yardv1.PutLimitRequest) error {
	l := req.Limit
	if l == nil {
		return invalid("/limit", "is missing")
	}
	if l.Rate == nil && l.MaxConcurrency == 0 && l.MaxConcurrencyPerGroup == 0 {
		return invalid("/limit", "limits nothing: set max_concurrency, max_concurrency_per_group or rate")
	}
	return firstError(
		name("/limit/name", l.Name),
		text("/limit/description", l.Description, DescriptionBytesMax),
		between("/limit/max_concurrency_per_group", l.MaxConcurrencyPerGroup, 0, ConcurrencyMax),
		between("/limit/max_concurrency", l.MaxConcurrency, 0, ConcurrencyMax),
		rate("/limit/rate", l.Rate),
		noShadow(l),
		onFull(l),
		revision("/limit/revision", l.Revision),
	)
}

// noShadow refuses a limit per group in shadow: each of its groups would have to be kept in the tables for as long as it might be full.
func noShadow(l *yardv1.Limit) error {
	if l.Shadow && l.MaxConcurrencyPerGroup > 0 {
		return invalid("/limit/shadow", "a limit with max_concurrency_per_group cannot be in shadow: set them apart")
	}
	return nil
}

// OnFullAfterMin and OnFullAfterMax bound how long a task waits until a policy acts, ms: a shard may keep a slot that is free for half of the least.
const OnFullAfterMin, OnFullAfterMax = 100, 86_400_000

// onFull checks the policy of a limit that is full.
func onFull(l *yardv1.Limit) error {
	const policy, after = "/limit/on_full", "/limit/on_full_after_ms"
	if _, ok := yardv1.OnFull_name[int32(l.OnFull)]; !ok {
		return invalid(policy, "must be wait, reject_newest or cancel_oldest")
	}
	switch waits := l.OnFull == yardv1.OnFull_ON_FULL_WAIT; {
	case waits && l.OnFullAfterMs != 0:
		return invalid(after, "says when on_full acts: it needs an on_full other than wait")
	case waits:
		return nil
	case l.Shadow:
		return invalid(policy, "a limit in shadow holds nothing up, so no task waits for it: set shadow to false")
	case l.MaxConcurrency == 0 && l.MaxConcurrencyPerGroup == 0:
		return invalid(policy, "a rate has no slots: set max_concurrency or max_concurrency_per_group")
	case l.OnFullAfterMs == 0:
		return nil
	}
	return between(after, l.OnFullAfterMs, OnFullAfterMin, OnFullAfterMax)
}

// PutGroup checks a groups.put.
func PutGroup(req *yardv1.PutGroupRequest) error {
	g := req.Group
	if g == nil {
		return invalid("/group", "is missing")
	}
	return firstError(
		typeName("/group/name", g.Name),
		text("/group/description", g.Description, DescriptionBytesMax),
		weight("/group/weight", g.Weight),
		between("/group/max_concurrency", g.MaxConcurrency, 0, ConcurrencyMax),
		revision("/group/revision", g.Revision),
	)
}

// weight checks the weight of a group.
func weight(path string, w *float64) error {
	if w == nil || *w == 0 || *w >= WeightMin && *w <= WeightMax {
		return nil
	}
	return invalid(path, "is %v, want 0, or %v to %v", *w, WeightMin, WeightMax)
}

// traceRatio checks the share of traces that are recorded. Not a number is none.
func traceRatio(path string, r *float64) error {
	if r == nil || *r >= 0 && *r <= 1 {
		return nil
	}
	return invalid(path, "is %v, want 0 to 1", *r)
}

func revision(path string, n int64) error { return between(path, n, 0, math.MaxInt64) }

// rate checks how many attempts may start in a time; nil = any number.
func rate(path string, r *yardv1.Rate) error {
	if r == nil {
		return nil
	}
	if err := firstError(
		between(path+"/tasks", r.Tasks, 1, RateTasksMax),
		optional(path+"/per_ms", r.PerMs, 1, RatePerMax.Milliseconds()),
		optional(path+"/burst", r.Burst, 1, RateTasksMax),
	); err != nil {
		return err
	}
	if per := cmp.Or(r.PerMs, RatePerDefault.Milliseconds()); int64(r.Tasks) > per*RateTasksPerMSMax {
		return invalid(path+"/tasks", "is %d in %d ms, at most %d in each ms are allowed", r.Tasks, per, RateTasksPerMSMax)
	}
	return nil
}
