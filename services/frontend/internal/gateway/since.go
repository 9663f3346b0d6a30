package gateway

import (
	"strconv"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/logversion"
)

// tasksKnown refuses fields of tasks that a node of an older log version would lose (I13).
func (g *Gateway) tasksKnown(tasks []*yardv1.NewTask) error {
	for i, t := range tasks {
		field, since := "", uint32(0)
		switch {
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

// typeKnown refuses settings of a type by which a node of an older log version would not accept tasks.
func (g *Gateway) typeKnown(t *yardv1.TaskType) error {
	switch {
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

func (g *Gateway) pauseKnown() error { return g.known("/name", logversion.Levels) }

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
