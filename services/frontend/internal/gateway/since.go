package gateway

import (
	"strconv"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/logversion"
)

// tasksKnown refuses fields of tasks that a node of an older log version would lose (I13). The newest are asked first: of several, one that is
// known must not hide another that is not.
func (g *Gateway) tasksKnown(tasks []*yardv1.NewTask) error {
	for i, t := range tasks {
		field, since := "", uint32(0)
		switch {
		case t.UniqueKey != "":
			field, since = "unique_key", logversion.UniqueKeys
		case t.BatchId != "":
			field, since = "batch_id", logversion.Batches
		case t.OrderKey != "":
			field, since = "order_key", logversion.OrderKeys
		case t.Cost > 1:
			field, since = "cost", logversion.Cost
		case retrySince(t.Retry) != "":
			field, since = "retry/"+retrySince(t.Retry), logversion.RetryRules
		case t.Group != "":
			field, since = "group", logversion.Groups
		case t.StartWithinMs != 0:
			field, since = "start_within_ms", logversion.Expiry
		case t.FinishWithinMs != 0:
			field, since = "finish_within_ms", logversion.Expiry
		case len(t.Headers) > 0:
			field, since = "headers", logversion.Headers
		default:
			continue
		}
		if g.LogVersion() < since {
			return g.known("/tasks/"+strconv.Itoa(i)+"/"+field, since)
		}
	}
	return nil
}

// retrySince is the first field of RetryRules in a policy, by which an owner of an older log version would not decide; "" = it has none.
func retrySince(r *yardv1.RetryPolicy) string {
	switch {
	case len(r.GetNonRetryable()) > 0:
		return "non_retryable"
	case len(r.GetByError()) > 0:
		return "by_error"
	case r.GetJitter() != 0:
		return "jitter"
	case r.GetMaxDeliveries() != 0:
		return "max_deliveries"
	case r.GetOnLost() != 0:
		return "on_lost"
	case r.GetOnTimeout() != 0:
		return "on_timeout"
	}
	return ""
}

// failuresKnown refuses what an owner of an older log version would take for a failure.
func (g *Gateway) failuresKnown(tasks []*yardv1.Failure) error {
	if g.LogVersion() >= logversion.Snooze {
		return nil
	}
	for i, t := range tasks {
		if t.Snooze {
			return g.known("/tasks/"+strconv.Itoa(i)+"/snooze", logversion.Snooze)
		}
	}
	return nil
}

// typeKnown refuses settings of a type by which a node of an older log version would not accept tasks.
func (g *Gateway) typeKnown(t *yardv1.TaskType) error {
	switch {
	case t.Cost > 1:
		return g.known("/type/cost", logversion.Cost)
	case retrySince(t.Retry) != "":
		return g.known("/type/retry/"+retrySince(t.Retry), logversion.RetryRules)
	case t.MaxConcurrencyPerGroup != 0:
		return g.known("/type/max_concurrency_per_group", logversion.PerGroup)
	case t.StartWithinMs != 0:
		return g.known("/type/start_within_ms", logversion.Expiry)
	case t.FinishWithinMs != 0:
		return g.known("/type/finish_within_ms", logversion.Expiry)
	case t.Rate != nil:
		return g.known("/type/rate", logversion.Rates)
	case len(t.Limits) > 0:
		return g.known("/type/limits", logversion.Levels)
	}
	return nil
}

// Limits other than those of types, and pauses, are refused while a matching owner of an older log version would start
// attempts beyond them.

func (g *Gateway) domainKnown(d *yardv1.Domain) error {
	switch {
	case d.DeadLettersMaxAgeMs != 0:
		return g.known("/domain/dead_letters_max_age_ms", logversion.LetterLimits)
	case d.DeadLettersMax != 0:
		return g.known("/domain/dead_letters_max", logversion.LetterLimits)
	case d.MaxConcurrencyPerGroup != 0:
		return g.known("/domain/max_concurrency_per_group", logversion.PerGroup)
	case d.Rate != nil:
		return g.known("/domain/rate", logversion.Rates)
	case d.MaxConcurrency != 0:
		return g.known("/domain/max_concurrency", logversion.Levels)
	}
	return nil
}

// tasklistKnown refuses several partitions, too, while a history owner would give slots back at the wrong shard, or a frontend lose polls
// that one gives up.
func (g *Gateway) tasklistKnown(l *yardv1.Tasklist) error {
	switch {
	case l.PartitionsMax != 0:
		return g.known("/tasklist/partitions_max", logversion.Scales)
	case l.MaxQueuedPerGroup != 0:
		return g.known("/tasklist/max_queued_per_group", logversion.GroupStops)
	case l.Partitions > 1:
		return g.known("/tasklist/partitions", logversion.Partitions)
	case l.MaxConcurrencyPerGroup != 0:
		return g.known("/tasklist/max_concurrency_per_group", logversion.PerGroup)
	case l.Rate != nil:
		return g.known("/tasklist/rate", logversion.Rates)
	case l.MaxConcurrency != 0:
		return g.known("/tasklist/max_concurrency", logversion.Levels)
	}
	return nil
}

// pollKnown refuses several tasklists while a matching owner would keep such a poll.
func (g *Gateway) pollKnown(req *yardv1.PollRequest) error {
	if len(req.Tasklists) > 0 {
		return g.known("/tasklists", logversion.Weighted)
	}
	return nil
}

func (g *Gateway) stopKnown(what stoppable) error {
	if what.kind == "group" {
		return g.known("/name", logversion.GroupStops)
	}
	return g.known("/name", logversion.Levels)
}

// groupFilterKnown refuses a filter by group while an owner of an older log version would not see it.
func (g *Gateway) groupFilterKnown(path, group string) error {
	if group == "" {
		return nil
	}
	return g.known(path, logversion.GroupStops)
}

// orderFilterKnown refuses what a node of an older log version would not filter by.
func (g *Gateway) orderFilterKnown(req *yardv1.ListRequest) error {
	switch {
	case req.OrderKey != "":
		return g.known("/order_key", logversion.OrderKeys)
	case req.Blocked:
		return g.known("/blocked", logversion.OrderKeys)
	case req.BatchId != "":
		return g.known("/batch_id", logversion.Batches)
	}
	return nil
}

func (g *Gateway) limitKnown(l *yardv1.Limit) error {
	if l.OnFull != yardv1.OnFull_ON_FULL_WAIT {
		return g.known("/limit/on_full", logversion.OnFull)
	}
	if l.Shadow {
		return g.known("/limit/shadow", logversion.Shadow)
	}
	if l.MaxConcurrencyPerGroup != 0 {
		return g.known("/limit/max_concurrency_per_group", logversion.PerGroup)
	}
	if l.Rate != nil {
		return g.known("/limit/rate", logversion.Rates)
	}
	return g.known("/limit", logversion.Levels)
}

func (g *Gateway) groupKnown(one *yardv1.Group) error {
	if one.MaxConcurrency != 0 {
		return g.known("/group/max_concurrency", logversion.PerGroup)
	}
	return g.known("/group", logversion.Groups)
}

// known tells whether each node of the cluster knows what came with a log version.
func (g *Gateway) known(path string, since uint32) error {
	if v := g.LogVersion(); v < since {
		return fault.At(fault.FailedPrecondition, path,
			"needs log version %d, the cluster writes %d: update all nodes, then run yard upgrade finalize", since, v)
	}
	return nil
}
