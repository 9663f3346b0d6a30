package matchingsim

import (
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/arrival"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/match"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/question"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/tree"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/waiting"
)

// The core's types, for who may not import them.
type (
	Config       = match.Config
	Catalog      = match.Catalog
	Limit        = limit.Setting
	Now          = match.Now
	Inputs       = match.Inputs
	Effects      = match.Effects
	CallOutcome  = match.CallOutcome
	OpenOutcome  = match.OpenOutcome
	AskOutcome   = question.Answer
	Undelivered  = grab.Undelivered
	Held         = limit.Running
	Verdicts     = grab.Verdicts
	Verdict      = grab.Verdict
	Hints        = match.Hints
	Release      = match.Release
	Triggers     = arrival.Triggers
	Poll         = waiting.Poll
	SilentWorker = waiting.SilentWorker
	Answer       = grab.Answer
	Batch        = grab.Batch
	Ask          = question.Question
	Move         = tree.Move
	Branch       = tree.Branch
	Census       = match.Census
	Ref          = table.Ref
	Tasklist     = table.Tasklist
	Column       = table.Column
	Call         = table.Call
	Outcome      = table.Outcome
	Opened       = table.Opened
	Rate         = table.Rate
)

// The questions to history.
const (
	AskUndelivered = question.Undelivered
	AskRunning     = question.Running
	AskRetrigger   = question.Retrigger
)

// Why an owner ends.
const (
	Overtaken = "a newer owner has fenced it"
	Drained   = "drained"
)

// DomainRef is the limit of all attempts of a domain.
const DomainRef = table.DomainRef

// The references of limits.
var (
	TypeRef, TasklistRef, SharedRef = table.TypeRef, table.TasklistRef, table.SharedRef
	RateRef, PerGroupRef            = table.RateRef, table.PerGroupRef
)

// Host is what an owner runs on.
type Host interface {
	Now() Now
	// After calls do, later, and not before d has passed.
	After(d time.Duration, do func())
	// CarryOut does what a turn asks for, in the order of its fields. fx is good until it returns.
	CarryOut(fx *Effects)
	// Ended says that the owner is no more, and why.
	Ended(why string)
}

// Owner is one ownership of a shard.
type Owner struct {
	host Host
	core *match.Shard
	in   Inputs
	fx   Effects
	// turning: a turn is due. wakes counts the times that it was said when the next one is.
	turning bool
	wakes   int
	ended   bool
}

// New begins an ownership.
func New(cfg Config, catalog Catalog, host Host) *Owner {
	o := &Owner{host: host, core: match.New(cfg, catalog, host.Now())}
	o.wake()
	return o
}

// Put adds to what the next turn takes in.
func (o *Owner) Put(add func(in *Inputs)) {
	if o.ended {
		return
	}
	add(&o.in)
	o.wake()
}

// Drain has the owner give the shard up.
func (o *Owner) Drain() { o.Put(func(in *Inputs) { in.Drain = true }) }

// Kill ends the owner as SIGKILL does.
func (o *Owner) Kill() { o.ended = true }

// Census counts what the owner holds.
func (o *Owner) Census() Census { return o.core.Census() }

func (o *Owner) wake() {
	if o.turning {
		return
	}
	o.turning = true
	o.host.After(0, o.turn)
}

// turn takes in what has come, and carries out what follows.
func (o *Owner) turn() {
	o.turning = false
	if o.ended {
		return
	}
	now, in := o.host.Now(), o.in
	o.in = Inputs{Drain: in.Drain}
	in.Proven = now.Mono // no connection breaks here
	o.core.Step(&in, now, &o.fx)
	o.host.CarryOut(&o.fx)
	switch {
	case o.fx.Overtaken:
		o.end(Overtaken)
	case o.fx.Drained:
		o.end(Drained)
	case o.fx.Wake > 0:
		o.wakes++
		said := o.wakes
		o.host.After(o.fx.Wake-now.Mono, func() {
			if said == o.wakes && !o.ended { // no other turn has said when the next one is
				o.wake()
			}
		})
	}
}

func (o *Owner) end(why string) {
	o.ended = true
	o.host.Ended(why)
}
