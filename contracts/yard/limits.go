package yard

import (
	"context"
	"iter"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// Limit bounds the attempts that run at once, or that start in a time, or both, of all task types that name it in TaskType.Limits.
type Limit struct {
	// Name is [A-Za-z0-9_-]{1,64}; required.
	Name string
	// Description is for people; at most 1024 bytes.
	Description string
	// MaxConcurrency bounds the attempts of all these types that run at once in the domain, on any number of
	// nodes, 1..1000000; required, unless there is a Rate or MaxConcurrencyPerGroup. Default 0: any number.
	MaxConcurrency int
	// MaxConcurrencyPerGroup bounds the attempts of all these types of each group (Task.Group) that run at once, on any number of nodes,
	// 1..1000000; a group may have its own number (Group.MaxConcurrency). Tasks without a group are not counted. Default 0 = no limit.
	MaxConcurrencyPerGroup int
	// Rate is how many of them start in a time. Default: any number.
	Rate Rate
	// Shadow: it counts, and holds nothing up; LimitUse.WouldWait of TopLimits counts the attempts that it would have held up. Not with
	// MaxConcurrencyPerGroup.
	Shadow bool
	// OnFull is what happens to a task that has waited for a slot of it for OnFullAfter, while all of them were in use: 100 ms to 24 h, default
	// 1 s. Only with MaxConcurrency or MaxConcurrencyPerGroup, and not in Shadow. Default: it waits on.
	OnFull      OnFull
	OnFullAfter time.Duration
	// SlotsInUse is how many of them run now. Only in the answer of GetLimit.
	SlotsInUse int
	// Revision changes with every put. PutLimit replaces only this revision, or any if it is 0.
	Revision int64
}

// OnFull is the action of a limit that is full. A task waits for a slot if a worker has room for it.
type OnFull string

const (
	// OnFullWait: tasks wait until a slot is free. So does "".
	OnFullWait OnFull = "wait"
	// OnFullRejectNewest: tasks that wait are cancelled.
	OnFullRejectNewest OnFull = "reject_newest"
	// OnFullCancelOldest: the attempt that has held a slot for the longest is asked to stop, as by Cancel; with
	// MaxConcurrencyPerGroup one of the same group.
	OnFullCancelOldest OnFull = "cancel_oldest"
)

func onFullOf(w yardv1.OnFull) OnFull {
	if w == yardv1.OnFull_ON_FULL_WAIT {
		return ""
	}
	return OnFull(w.Name())
}

// PutLimit creates or changes a limit and returns it as stored. It takes effect within a second: a smaller one stops
// no attempt, but fewer start until enough have ended. STALE: another revision than l's is stored.
// FAILED_PRECONDITION: the domain has 1000 limits.
func (c *Client) PutLimit(ctx context.Context, l Limit) (Limit, error) {
	resp, err := call[yardv1.PutLimitResponse](ctx, &c.transport, c.subject("limits.put"), &yardv1.PutLimitRequest{Limit: l.Wire()})
	return limitOf(resp.GetLimit()), err
}

// GetLimit returns a limit and how much of it is in use, or NOT_FOUND.
func (c *Client) GetLimit(ctx context.Context, name string) (Limit, error) {
	resp, err := call[yardv1.GetLimitResponse](ctx, &c.transport, c.subject("limits.get"), &yardv1.GetLimitRequest{Name: name})
	l := limitOf(resp.GetLimit())
	l.SlotsInUse = int(resp.GetSlotsInUse())
	return l, err
}

// Limits yields all limits of the domain that types share, by name, and asks for them page by page as Tasks does.
func (c *Client) Limits(ctx context.Context) iter.Seq2[Limit, error] {
	return pages(func(cursor string) ([]Limit, string, error) {
		resp, err := call[yardv1.ListLimitsResponse](ctx, &c.transport, c.subject("limits.list"), &yardv1.ListLimitsRequest{Cursor: cursor})
		return each(resp.GetLimits(), limitOf), resp.GetNextCursor(), err
	})
}

// DeleteLimit deletes a limit, and returns it as it was: only the given revision (STALE if another one is stored), or
// any if that is 0. FAILED_PRECONDITION: types name it; the error's message says which. NOT_FOUND: there is none, or an
// earlier try deleted it and its answer was lost.
func (c *Client) DeleteLimit(ctx context.Context, name string, revision int64) (Limit, error) {
	resp, err := call[yardv1.DeleteLimitResponse](ctx, &c.transport, c.subject("limits.delete"), &yardv1.DeleteLimitRequest{Name: name, Revision: revision})
	return limitOf(resp.GetLimit()), err
}

// Wire is the limit as the API writes it.
func (l Limit) Wire() *yardv1.Limit {
	return &yardv1.Limit{
		Name: l.Name, Description: l.Description, MaxConcurrency: int32Of(l.MaxConcurrency), Rate: l.Rate.wire(),
		MaxConcurrencyPerGroup: int32Of(l.MaxConcurrencyPerGroup), Shadow: l.Shadow, OnFull: numberOf[yardv1.OnFull](l.OnFull), OnFullAfterMs: l.OnFullAfter.Milliseconds(), Revision: l.Revision,
	}
}

func limitOf(w *yardv1.Limit) Limit {
	return Limit{
		Name: w.GetName(), Description: w.GetDescription(), MaxConcurrency: int(w.GetMaxConcurrency()), Rate: rateOf(w.GetRate()),
		MaxConcurrencyPerGroup: int(w.GetMaxConcurrencyPerGroup()), Shadow: w.GetShadow(), OnFull: onFullOf(w.GetOnFull()),
		OnFullAfter: time.Duration(w.GetOnFullAfterMs()) * time.Millisecond, Revision: w.GetRevision(),
	}
}

// Rate is how many attempts start in a time, on any number of nodes. The zero Rate is any number.
type Rate struct {
	// Tasks is how many start in Per, 1..1000000, and at most 1000 in each millisecond.
	Tasks int
	// Per is 1 ms to 1 day. Default 1 s.
	Per time.Duration
	// Burst is how many start at once after a rest, 1..1000000. Default: what the rate gives in a second, but at least 1.
	Burst int
}

func (r Rate) wire() *yardv1.Rate {
	if r == (Rate{}) {
		return nil
	}
	return &yardv1.Rate{Tasks: int32Of(r.Tasks), PerMs: milliseconds(r.Per), Burst: int32Of(r.Burst)}
}

func rateOf(w *yardv1.Rate) Rate {
	return Rate{Tasks: int(w.GetTasks()), Per: time.Duration(w.GetPerMs()) * time.Millisecond, Burst: int(w.GetBurst())}
}
