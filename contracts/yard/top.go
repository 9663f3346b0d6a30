package yard

import (
	"context"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// TopOptions say what TopLimits returns. The zero value is the ten most saturated limits.
type TopOptions struct {
	// Limits is how many limits, 1..100. Default 10.
	Limits int
	// Each is how many holders, and how many tasklists that wait, of each limit, 1..10. Default 3.
	Each int
	// ByWaiting: those come first for whose slots the most tasks wait. Default: those that were full for the largest share of the last hour.
	ByWaiting bool
}

// TopLimits are limits in use.
type TopLimits struct {
	// Limits are sorted as asked for.
	Limits []LimitUse
	// Others is how many more limits are in use.
	Others int
	// SilentShards are matching shards that did not answer within a second: what is there is missing.
	SilentShards []int
}

// LimitUse is how a limit is used: of the domain, a tasklist, a type, or one that types share. Matching remembers it in memory: times start
// over when another node takes a shard over, or a shard has had nothing to do with the domain for a minute.
type LimitUse struct {
	// Ref is which limit: "domain", "tasklist/NAME", "type/NAME", or "shared/NAME" of PutLimit.
	Ref string
	// MaxConcurrency is the most attempts that it lets run at once.
	MaxConcurrency int
	// SlotsInUse are those that the tables count: of running attempts, and free ones that a matching shard keeps for up to 50 ms. Where
	// the tables do not answer, the most that they last counted for one shard.
	SlotsInUse int
	// Running counts the attempts that use a slot, as the shards know them.
	Running int
	// UnexplainedSlots are those that the tables count and no shard knows of. More than 0 for a minute is a leak; it ends by itself 5 minutes
	// after the last deadline of their attempts. 0 if a shard did not answer.
	UnexplainedSlots int
	// ReclaimedSlots counts those that were held by attempts that were over, and freed by comparison with history.
	ReclaimedSlots int64
	// Shadow: it is in shadow, and holds nothing up. WouldWait counts the attempts of the last hour that it would have held up.
	Shadow    bool
	WouldWait int64
	// Rejected counts the tasks of the last hour that were cancelled since they waited for it, Displaced the attempts that were asked to make
	// room (Limit.OnFull).
	Rejected, Displaced int64
	// FullFor is since when it is full; 0 = it is not.
	FullFor time.Duration
	// SaturationPercent is the share of Observed, an hour at most, in which it was full.
	SaturationPercent int
	Observed          time.Duration
	// Holders have had their slots for the longest.
	Holders []SlotHolder
	// Waiters are tasklists in which a poll waits, and tasks are ready, and this limit has no slot for them: those that wait for the longest.
	Waiters []SlotWaiter
	// WaitingTasklists is how many wait, WaitingTasks how many ready tasks they hold that the limit covers, as matching counts them, which may know of one twice.
	WaitingTasklists int
	WaitingTasks     int64
	// Shards are the matching shards that use it.
	Shards []ShardSlots
}

// SlotHolder is an attempt that uses a slot.
type SlotHolder struct {
	TaskID string
	// HeldFor is for how long matching has known it to run.
	HeldFor time.Duration
	// Type, Tasklist, Worker and State are the task's, empty if it was not looked up, or not found. A State other than StateRunning means
	// that the slot is about to be freed, or leaked.
	Type, Tasklist, Worker string
	State                  State
}

// SlotWaiter is a tasklist that waits for a slot.
type SlotWaiter struct {
	Tasklist string
	// Priority is that of its most urgent task that waits for it.
	Priority int
	// WaitingFor is for how long, since it last got a slot.
	WaitingFor time.Duration
	// Tasks is how many ready tasks it holds that the limit covers, as matching counts them, which may know of one twice.
	Tasks int64
}

// ShardSlots is what a matching shard uses of a limit.
type ShardSlots struct {
	Shard int
	// Running counts attempts, Slots those that the tables count for the shard.
	Running, Slots int
}

// TopLimits returns the limits of the domain with the attempts that use their slots and the tasklists that wait for one. Shards that do not answer
// are named; it fails only if none does.
func (c *Client) TopLimits(ctx context.Context, o TopOptions) (TopLimits, error) {
	req := &yardv1.TopLimitsRequest{Limit: int32Of(o.Limits), Each: int32Of(o.Each), ByWaiting: o.ByWaiting}
	resp, err := c.Wire().TopLimits(ctx, req)
	if err != nil {
		return TopLimits{}, err
	}
	return topLimitsOf(resp), nil
}

func topLimitsOf(w *yardv1.TopLimitsResponse) TopLimits {
	return TopLimits{
		Limits: each(w.GetLimits(), limitUseOf), Others: int(w.GetOthers()),
		SilentShards: each(w.GetSilentShards(), func(m int32) int { return int(m) }),
	}
}

func limitUseOf(w *yardv1.LimitUse) LimitUse {
	return LimitUse{
		Ref: w.GetRef(), MaxConcurrency: int(w.GetMaxConcurrency()), SlotsInUse: int(w.GetSlotsInUse()), Running: int(w.GetRunning()),
		UnexplainedSlots: int(w.GetUnexplainedSlots()), ReclaimedSlots: w.GetReclaimedSlots(), Shadow: w.GetShadow(), WouldWait: w.GetWouldWait(),
		Rejected: w.GetRejected(), Displaced: w.GetDisplaced(),
		FullFor: milliTime(w.GetFullForMs()), SaturationPercent: int(w.GetSaturationPercent()), Observed: milliTime(w.GetObservedMs()),
		Holders: each(w.GetHolders(), func(h *yardv1.SlotHolder) SlotHolder {
			one := SlotHolder{TaskID: h.TaskId, HeldFor: milliTime(h.HeldForMs), Type: h.Type, Tasklist: h.Tasklist, Worker: h.Worker}
			if h.State != 0 {
				one.State = State(h.State.Name())
			}
			return one
		}),
		Waiters: each(w.GetWaiters(), func(t *yardv1.SlotWaiter) SlotWaiter {
			return SlotWaiter{Tasklist: t.Tasklist, Priority: int(t.Priority), WaitingFor: milliTime(t.WaitingForMs), Tasks: t.Tasks}
		}),
		WaitingTasklists: int(w.GetWaitingTasklists()), WaitingTasks: w.GetWaitingTasks(),
		Shards: each(w.GetShards(), func(s *yardv1.ShardSlots) ShardSlots {
			return ShardSlots{Shard: int(s.Shard), Running: int(s.Running), Slots: int(s.Slots)}
		}),
	}
}
