package shard

import (
	"context"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/match"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/question"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/report"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/tree"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/waiting"
)

// Core decides. It is a *match.Shard, except in tests of the loop.
type Core interface {
	// Step is one turn; see match.Shard.
	Step(in *match.Inputs, now match.Now, fx *match.Effects)
	// Tasklist counts the partitions of a tasklist.
	Tasklist(domain, name string) []match.PartitionCount
	// Pollers are workers that polled a tasklist.
	Pollers(domain, tasklist, after string, limit int, now match.Now) report.Page
	// LimitsInUse tells how limits of a domain are used.
	LimitsInUse(domain string, each int, now match.Now) (all []limit.InUse, leftOut int)
	// FullLimits are limits of all domains for which tasklists wait.
	FullLimits(most int, now match.Now) []match.FullLimit
	// Explain tells what keeps tasks of a kind waiting.
	Explain(k match.Kind, holders int, now match.Now) match.Explained
}

// Outbox sends without waiting. Its arguments may change after the call. Only the loop
// calls it.
type Outbox interface {
	// Answer ends a poll. Inputs.Bounced gets the id if there is no subscriber. An error means
	// that it was not sent.
	Answer(a *grab.Answer) error
	// Refuse ends a poll that was not taken.
	Refuse(r *waiting.Refusal)
	// Moves gives polls up to their frontends. Inputs.Unmoved gets those that no one took.
	Moves(all []tree.Move)
	// Batch sends events to the owner of their partition. Nothing tells whether it arrived but its verdicts.
	Batch(b *grab.Batch)
	// Hints tells others what may be lost.
	Hints(freed, restore []match.LimitHint, hungry []match.Hungry)
	// Branches tells the parents of partitions of tasklists what these hold; it may be lost.
	Branches(all []tree.Branch)
	// Loads tells frontends what waits in partitions of tasklists; it may be lost.
	Loads(all []tree.Load)
	// Ack says that a message of the hint stream is taken care of.
	Ack(delivery uint64)
}

// History answers questions, all pages of the answer at once. It fails where the owner of
// the partition does not answer. It is safe for concurrent use.
type History interface {
	Ask(ctx context.Context, ask question.Question) (question.Answer, error)
}
