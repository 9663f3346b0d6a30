package gateway

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/testkit"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/purge"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/validate"
)

// backlog is a history partition that has some ready tasks in memory, and more on disk, which it reads while others look.
type backlog struct {
	memory, disk []string
	window       int
	stuck        bool
	codes        map[string]string // of verdicts; OK by default
	cancelled    []string
}

func (b *backlog) read() {
	for len(b.memory) < b.window && len(b.disk) > 0 && !b.stuck {
		b.memory, b.disk = append(b.memory, b.disk[0]), b.disk[1:]
	}
}

func (b *backlog) owner(d *Deps) {
	d.Owners.HistoryList = func(_ context.Context, p int, req *rpcv1.ListTasksRequest) (*rpcv1.ListTasksResponse, error) {
		resp := &rpcv1.ListTasksResponse{}
		if p != 0 {
			return resp, nil
		}
		slices.SortFunc(b.memory, func(x, y string) int { return strings.Compare(y, x) })
		for _, id := range b.memory {
			if id < req.Filter.Cursor && len(resp.Tasks) < int(req.Filter.Limit) {
				resp.Tasks = append(resp.Tasks, &yardv1.Task{TaskId: id})
			}
		}
		resp.More = len(resp.Tasks) == int(req.Filter.Limit)
		b.read() // too late to show
		return resp, nil
	}
	d.Owners.TimerList = func(context.Context, int, *rpcv1.ListTasksRequest) (*rpcv1.ListTasksResponse, error) {
		return &rpcv1.ListTasksResponse{}, nil
	}
	d.Owners.HistoryDescribe = func(_ context.Context, p int, _ *rpcv1.DescribePartitionRequest) (*rpcv1.DescribePartitionResponse, error) {
		if p != 0 {
			return &rpcv1.DescribePartitionResponse{}, nil
		}
		return &rpcv1.DescribePartitionResponse{UnreadBatches: int64(len(b.disk))}, nil
	}
}

// decide answers the cancels that were sent behind the first seen ones.
func (b *backlog) decide(t *testing.T, r *rig, seen int) int {
	t.Helper()
	all := r.bus.sentEvents()
	for _, e := range all[seen:] {
		v := &logv1.VerdictBatch{RequestId: e.id}
		for _, event := range e.batch.Events {
			id := ids.TaskID(event.TaskId).String()
			v.Verdicts = append(v.Verdicts, &logv1.EventVerdict{Code: b.codes[id]})
			b.memory = slices.DeleteFunc(b.memory, func(m string) bool { return m == id && b.codes[id] != string(fault.Unknown) })
			b.cancelled = append(b.cancelled, id)
		}
		r.TakeVerdicts(testkit.Encoded(t, v))
	}
	return len(all)
}

// purge sends steps until the purge is over, and returns their sum and number.
func (b *backlog) purge(t *testing.T, r *rig, req *yardv1.PurgeRequest) (sum *yardv1.Purged, steps int) {
	t.Helper()
	const most = 100
	sum = &yardv1.Purged{}
	for seen := 0; steps < most; steps++ {
		answer, got := r.answers(t)
		r.Purge(validate.Tasklist)(r.call(), req.CloneVT(), answer)
		synctest.Wait()
		seen = b.decide(t, r, seen)
		o := <-got
		if o.err != nil {
			t.Fatal(o.err)
		}
		did := o.resp.(*yardv1.PurgeResponse).Purged
		sum.Found, sum.Cancelled, sum.Ended, sum.Undecided = sum.Found+did.Found, sum.Cancelled+did.Cancelled, sum.Ended+did.Ended, sum.Undecided+did.Undecided
		sum.UnreadBatches = did.UnreadBatches
		if req.Cursor = did.NextCursor; req.Cursor == "" {
			return sum, steps + 1
		}
	}
	t.Fatalf("not over after %d steps: %v", most, sum)
	return sum, steps
}

func (b *backlog) fill(n int) {
	for i := range n {
		b.disk = append(b.disk, ids.NewTaskID(time.Now().Add(-time.Duration(n-i)*time.Second), 0, uint64(i)).String())
	}
	b.read()
}

// All that was there is cancelled, also what is read between a step's list and its count; what came later is not.
func TestI7_APurgeReachesWhatIsReadMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &backlog{window: 7}
		r := newRig(t, b.owner).running(t)
		b.fill(50)
		later := ids.NewTaskID(time.Now().Add(time.Minute), 0, 1).String()
		b.disk = append(b.disk, later)
		sum, _ := b.purge(t, r, &yardv1.PurgeRequest{Name: "main", Limit: 3})
		if sum.Cancelled != 50 || sum.UnreadBatches != 0 || !slices.Equal(b.memory, []string{later}) {
			t.Errorf("%v, left are %v and %v", sum, b.memory, b.disk)
		}
	})
}

// What is never read ends a purge, which says so; and a preview touches nothing.
func TestAPurgeTellsWhatItCannotReach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &backlog{window: 5}
		r := newRig(t, b.owner).running(t)
		b.fill(20)
		b.stuck = true
		if sum, steps := b.purge(t, r, &yardv1.PurgeRequest{Name: "main", Preview: true, Limit: 2}); sum.Found != 5 || sum.UnreadBatches != 15 || steps != 3 || len(b.cancelled) != 0 {
			t.Errorf("preview: %v in %d steps", sum, steps)
		}
		sum, steps := b.purge(t, r, &yardv1.PurgeRequest{Name: "main"})
		if sum.Cancelled != 5 || sum.UnreadBatches != 15 || steps != 1+purge.IdleMax {
			t.Errorf("%v in %d steps", sum, steps)
		}
	})
}

// Each outcome is counted as what it is, and an undecided one is tried again.
func TestAPurgeCountsWhatTheLogSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &backlog{window: 5, codes: map[string]string{}}
		r := newRig(t, b.owner).running(t)
		b.fill(5)
		again := b.memory[0]
		b.codes[again], b.codes[b.memory[1]], b.codes[b.memory[2]] = string(fault.Unknown), string(fault.NotFound), string(fault.Stale)
		answer, got := r.answers(t)
		r.Purge(validate.Tasklist)(r.call(), &yardv1.PurgeRequest{Name: "main", By: "ann", Reason: "twice"}, answer)
		synctest.Wait()
		b.decide(t, r, 0)
		did := (<-got).resp.(*yardv1.PurgeResponse).Purged
		if did.Found != 5 || did.Cancelled != 2 || did.Ended != 2 || did.Undecided != 1 || did.NextCursor == "" {
			t.Errorf("%v", did)
		}
		if e := r.bus.sentEvents()[0].batch.Events[0]; e.Message != "purged by ann: twice" || e.Domain != "shop" {
			t.Errorf("%v", e)
		}
	})
}

// A task of which the log says nothing is tried again to the end, and the purge says so. A line of the log stands for tasks that were cancelled.
func TestAPurgeTriesAgainWhatIsUndecided(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines bytes.Buffer
		b := &backlog{window: 5, codes: map[string]string{}}
		r := newRig(t, b.owner, func(d *Deps) { d.Log = slog.New(slog.NewTextHandler(&lines, nil)) }).running(t)
		b.fill(5)
		b.codes[b.memory[0]] = string(fault.Unknown)
		sum, steps := b.purge(t, r, &yardv1.PurgeRequest{Name: "main"})
		if sum.Cancelled != 4 || steps != 1+purge.IdleMax || int(sum.Undecided) != steps {
			t.Errorf("%v in %d steps", sum, steps)
		}
		if n := strings.Count(lines.String(), "\n"); n != 1 || !strings.Contains(lines.String(), "tasks=4") {
			t.Errorf("it logged %d lines: %s", n, lines.String())
		}
	})
}
