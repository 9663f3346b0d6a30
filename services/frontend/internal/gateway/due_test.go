package gateway

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// dueStore is the timer store of each partition: tasks in the order of their minutes. The answers of its owners have up to cut tasks.
type dueStore struct {
	partitions [rigPartitions][]*yardv1.Task
	cut        int
	// fired is how many tasks of each partition fire while its owner counts.
	fired int
}

// add stores a task that is due after a time.
func (s *dueStore) add(p int, in time.Duration, typ string) {
	n := len(s.partitions[p])
	s.partitions[p] = append(s.partitions[p], &yardv1.Task{
		TaskId: ids.NewTaskID(time.UnixMilli(1), p, uint64(n+1)).String(), Tasklist: "mail", Type: typ, DueAtMs: time.Now().Add(in).UnixMilli(), ErrorMessage: strings.Repeat("\x01", 4<<10),
	})
	slices.SortStableFunc(s.partitions[p], func(a, b *yardv1.Task) int { return cmp.Compare(a.DueAtMs/60_000, b.DueAtMs/60_000) })
}

// perMessage is how many tasks a message of the store has.
const perMessage = 4

// list is an answer of an owner.
func (s *dueStore) list(_ context.Context, p int, req *rpcv1.ListTasksRequest) (*rpcv1.ListTasksResponse, error) {
	if req.Filter.Limit < 1 {
		return nil, fault.New(fault.Internal, "an owner needs a limit")
	}
	resp := &rpcv1.ListTasksResponse{}
	for i, task := range s.partitions[p] {
		minute := task.DueAtMs / 60_000
		at := &rpcv1.DuePlace{Minute: minute, Seq: uint64(1 + i/perMessage), Index: uint32(i % perMessage)}
		before := minute < req.DueFrom.Minute || minute == req.DueFrom.Minute && (at.Seq < req.DueFrom.Seq || at.Seq == req.DueFrom.Seq && at.Index < req.DueFrom.Index)
		switch {
		case before, minute >= req.DueUntilMinute:
		case len(resp.Tasks) == min(s.cut, int(req.Filter.Limit)):
			resp.DueNext = at
			return resp, nil
		default:
			resp.Tasks = append(resp.Tasks, task)
		}
	}
	return resp, nil
}

func (s *dueStore) ahead(_ context.Context, p int, req *rpcv1.CountAheadRequest) (*rpcv1.CountAheadResponse, error) {
	resp := &rpcv1.CountAheadResponse{Waiting: int64(max(0, len(s.partitions[p])-s.fired))}
	kinds := map[string]int64{}
	for _, task := range s.partitions[p] {
		minute := max(task.DueAtMs/60_000, req.FirstMinute)
		if minute < req.FromMinute || minute >= req.UntilMinute {
			continue
		}
		minute -= minute % req.SpanMinutes
		if n := len(resp.Spans); n == 0 || resp.Spans[n-1].Minute != minute {
			if n == int(req.SpansMax) {
				break
			}
			resp.Spans = append(resp.Spans, &rpcv1.AheadSpan{Minute: minute})
		}
		resp.Spans[len(resp.Spans)-1].Tasks++
		kinds[task.Type]++
	}
	for typ, n := range kinds {
		resp.Counts = append(resp.Counts, &yardv1.TimerCount{Tasklist: "mail", Type: typ, Tasks: n})
	}
	return resp, nil
}

func dueRig(t *testing.T, s *dueStore) *rig {
	return newRig(t, func(d *Deps) { d.Owners.TimerList, d.Owners.TimerAhead = s.list, s.ahead }).running(t)
}

// TestTasksAreListedByDueTime: each once, the next due minute first, in pages of any size; those of a minute by due time if they fit on a page. It does not
// matter if the answers of owners are short, since they read many tasks of others.
func TestTasksAreListedByDueTime(t *testing.T) {
	for _, cut := range []int{1, 3, 40} {
		t.Run(fmt.Sprint(cut), func(t *testing.T) { listByDueTime(t, cut) })
	}
}

func listByDueTime(t *testing.T, cut int) {
	synctest.Test(t, func(t *testing.T) {
		s := &dueStore{cut: cut}
		for n := range 60 { // of a minute that fits no page
			s.add(n%rigPartitions, 90*time.Minute+time.Duration(60-n)*time.Second/2, "t")
		}
		for n := range 30 {
			s.add(n%rigPartitions, time.Duration(n*7%30)*2*time.Minute-time.Second, "t")
		}
		s.add(0, 5*time.Hour, "t")
		s.add(1, 20*time.Second, "t") // in this minute, as one that is overdue
		r := dueRig(t, s)
		for _, limit := range []int32{1, 2, 25, 1000} {
			var all []*yardv1.Task
			for cursor, last := "", false; !last; {
				resp := answerOf[*yardv1.ListResponse](t, r, "shop", true, r.List, &yardv1.ListRequest{Limit: limit, Cursor: cursor, DueWithinMs: 3 * 3_600_000})
				fits(t, true, resp)
				if len(resp.Tasks) > int(limit) {
					t.Fatalf("%d tasks on a page of %d", len(resp.Tasks), limit)
				}
				if !slices.IsSortedFunc(resp.Tasks, func(a, b *yardv1.Task) int { return cmp.Compare(a.DueAtMs, b.DueAtMs) }) {
					t.Errorf("a page of %d is not sorted by due time", limit)
				}
				all, cursor, last = append(all, resp.Tasks...), resp.NextCursor, resp.NextCursor == ""
			}
			seen := map[string]bool{}
			for _, task := range all {
				seen[task.TaskId] = true
			}
			byMinute := func(a, b *yardv1.Task) int { return cmp.Compare(a.DueAtMs/60_000, b.DueAtMs/60_000) }
			if len(all) != 91 || len(seen) != 91 || !slices.IsSortedFunc(all, byMinute) {
				t.Errorf("pages of %d: %d tasks, %d different ones, or out of order", limit, len(all), len(seen))
			}
		}
		resp := answerOf[*yardv1.ListResponse](t, r, "shop", true, r.List, &yardv1.ListRequest{Limit: 1000, DueWithinMs: 1000})
		testkit.Equal(t, "due within a second", len(resp.Tasks), 1)
		bad := &yardv1.ListRequest{DueWithinMs: 1, Cursor: fmt.Sprintf("@1.%d.0.0", rigPartitions)}
		wantAt(t, testkit.Err(asked(r, "shop", true, r.List, bad)), fault.InvalidArgument, "/cursor")
	})
}

// TestTasksThatFireWhileTheyAreCountedAreNotMissing: an owner counts the tasks in memory before it counts all that wait. Tasks may fire between the two.
func TestTasksThatFireWhileTheyAreCountedAreNotMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &dueStore{cut: 1000, fired: 1}
		for range 3 {
			s.add(0, time.Minute, "t")
		}
		s.add(1, time.Minute, "t")
		s.add(1, 50*time.Hour, "t")
		s.add(1, 50*time.Hour, "t")
		r := dueRig(t, s)
		resp := answerOf[*yardv1.CountTimersResponse](t, r, "shop", true, r.CountTimers, &yardv1.CountTimersRequest{})
		testkit.Equal(t, "in all", [2]int64{resp.Tasks, resp.Later}, [2]int64{4, 1})
	})
}

// TestTasksThatComeAfterTheCountAreListed: a page is counted before it is read, and has no more tasks than it may have if others come in between.
func TestTasksThatComeAfterTheCountAreListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		counted, s := &dueStore{cut: 1000}, &dueStore{cut: 1000}
		for n := range 5 {
			counted.add(0, time.Duration(n)*time.Minute+time.Second, "t")
		}
		s.partitions[0] = slices.Clone(counted.partitions[0])
		for n := range 8 {
			s.add(n%rigPartitions, time.Minute+time.Duration(n)*time.Second, "t")
		}
		r := newRig(t, func(d *Deps) { d.Owners.TimerList, d.Owners.TimerAhead = s.list, counted.ahead }).running(t)
		for _, limit := range []int32{2, 5} {
			seen := map[string]bool{}
			for cursor, last := "", false; !last; {
				resp := answerOf[*yardv1.ListResponse](t, r, "shop", true, r.List, &yardv1.ListRequest{Limit: limit, Cursor: cursor, DueWithinMs: 3_600_000})
				if len(resp.Tasks) > int(limit) {
					t.Fatalf("%d tasks on a page of %d", len(resp.Tasks), limit)
				}
				for _, task := range resp.Tasks {
					seen[task.TaskId] = true
				}
				cursor, last = resp.NextCursor, resp.NextCursor == ""
			}
			testkit.Equal(t, fmt.Sprint("listed in pages of ", limit), len(seen), 13)
		}
	})
}

// TestAPageOfShortAnswersIsShort: an owner that reads many tasks of others is asked a few times for a page, and the next one goes on from there.
func TestAPageOfShortAnswersIsShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &dueStore{cut: 1}
		for n := range 40 {
			s.add(0, time.Duration(n)*time.Minute+time.Second, "t")
		}
		asked := 0
		r := newRig(t, func(d *Deps) {
			d.Owners.TimerAhead = s.ahead
			d.Owners.TimerList = func(ctx context.Context, p int, req *rpcv1.ListTasksRequest) (*rpcv1.ListTasksResponse, error) {
				if p == 0 {
					asked++
				}
				return s.list(ctx, p, req)
			}
		}).running(t)
		resp := answerOf[*yardv1.ListResponse](t, r, "shop", true, r.List, &yardv1.ListRequest{Limit: 100, DueWithinMs: 3_600_000})
		if asked > 4 || len(resp.Tasks) == 0 || resp.NextCursor == "" {
			t.Errorf("%d tasks after %d answers, and %q is next", len(resp.Tasks), asked, resp.NextCursor)
		}
	})
}

// TestAMinuteThatFitsNoAnswerIsCut: its answers of owners are cut until they fit, and a task that an owner has stored twice is listed once.
func TestAMinuteThatFitsNoAnswerIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &dueStore{cut: 1000}
		for range 100 {
			s.add(0, time.Second, "t")
		}
		s.partitions[0] = slices.Insert(s.partitions[0], 1, s.partitions[0][0])
		r := dueRig(t, s)
		var listed []string
		for cursor, last := "", false; !last; {
			resp := answerOf[*yardv1.ListResponse](t, r, "shop", true, r.List, &yardv1.ListRequest{Limit: 1000, Cursor: cursor, DueWithinMs: 3_600_000})
			fits(t, true, resp)
			for _, task := range resp.Tasks {
				listed = append(listed, task.TaskId)
			}
			cursor, last = resp.NextCursor, resp.NextCursor == ""
		}
		testkit.Equal(t, "listed", len(listed), 100)
		slices.Sort(listed)
		testkit.Equal(t, "different ones", len(slices.Compact(listed)), 100)
	})
}

// TestTimersAreCounted: the spans of all partitions are added up, and what is overdue counts in the first one.
func TestTimersAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &dueStore{cut: 1000}
		time.Sleep(time.Until(time.Now().Truncate(time.Hour).Add(time.Hour + time.Minute)))
		for p := range rigPartitions {
			s.add(p, -3*time.Hour, "late")
			s.add(p, 30*time.Minute, "t")
			s.add(p, 2*time.Hour, "t")
			s.add(p, 24*time.Hour-30*time.Second, "t") // in the span in which the time ends
			s.add(p, 50*time.Hour, "t")
		}
		r := dueRig(t, s)
		hour := time.Now().Truncate(time.Hour).UnixMilli()
		resp := answerOf[*yardv1.CountTimersResponse](t, r, "shop", true, r.CountTimers, &yardv1.CountTimersRequest{})
		const n = int64(rigPartitions)
		testkit.Equal(t, "spans", fmt.Sprint(resp.Spans[0].StartMs-hour, resp.Spans[0].EndMs-hour, resp.Spans[0].Tasks, resp.Spans[1].StartMs-hour, resp.Spans[1].Tasks, resp.Spans[2].StartMs-hour, resp.Spans[2].Tasks, len(resp.Spans)),
			fmt.Sprint(0, 3_600_000, 2*n, 7_200_000, n, 86_400_000, n, 3))
		testkit.Equal(t, "in all", [2]int64{resp.Tasks, resp.Later}, [2]int64{4 * n, n})
		testkit.Equal(t, "kinds", fmt.Sprint(resp.Counts[0].Type, resp.Counts[0].Tasks, resp.Counts[1].Type, resp.Counts[1].Tasks), fmt.Sprint("t", 3*n, "late", n))
		resp = answerOf[*yardv1.CountTimersResponse](t, r, "shop", true, r.CountTimers, &yardv1.CountTimersRequest{Type: "t"})
		testkit.Equal(t, "later, of a type: it is not known", resp.Later, 0)
		for p := range rigPartitions {
			for n := range 150 {
				s.add(p, time.Hour, fmt.Sprint("type", n))
			}
		}
		resp = answerOf[*yardv1.CountTimersResponse](t, r, "shop", true, r.CountTimers, &yardv1.CountTimersRequest{})
		testkit.Equal(t, "kinds at most", [2]any{len(resp.Counts), resp.Counts[0].Type}, [2]any{100, "t"})
	})
}
