package gateway

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/testkit"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/validate"
)

// The lines of all partitions are one, page by page, whatever the size of a page; an owner that knows no peeks is not taken at its word.
func TestAPeekMergesTheLinesOfAllPartitions(t *testing.T) {
	for _, spread := range []int{rigPartitions, 1} { // the line of one is as long as a page, too
		synctest.Test(t, func(t *testing.T) { peekMerges(t, spread) })
	}
}

func peekMerges(t *testing.T, spread int) {
	var lines [rigPartitions][]validate.Place
	for i := range 12 {
		p := validate.Place{Priority: int32(i%3 + 1), ReadyAtMs: time.Now().Add(-time.Duration(i/4) * time.Second).UnixMilli(), ID: ids.NewTaskID(time.Now(), (i+i/3)%spread, uint64(i))}
		lines[(i+i/3)%spread] = append(lines[(i+i/3)%spread], p)
	}
	all := slices.SortedFunc(slices.Values(slices.Concat(lines[:]...)), validate.Place.Compare)
	r := newRig(t, func(d *Deps) {
		d.Owners.HistoryDescribe = func(context.Context, int, *rpcv1.DescribePartitionRequest) (*rpcv1.DescribePartitionResponse, error) {
			return &rpcv1.DescribePartitionResponse{UnreadBatches: 2}, nil
		}
		d.Owners.HistoryList = func(_ context.Context, p int, req *rpcv1.ListTasksRequest) (*rpcv1.ListTasksResponse, error) {
			resp := &rpcv1.ListTasksResponse{}
			after := validate.Place{Priority: req.AfterPriority, ReadyAtMs: req.AfterReadyAtMs}
			copy(after.ID[:], req.AfterId)
			for _, place := range slices.SortedFunc(slices.Values(lines[p]), validate.Place.Compare) {
				switch {
				case place.Compare(after) <= 0:
				case len(resp.Tasks) == int(req.Filter.Limit):
					resp.More = true
				default:
					resp.Tasks = append(resp.Tasks, &yardv1.Task{TaskId: place.ID.String(), Priority: place.Priority})
					resp.ReadyAtMs = append(resp.ReadyAtMs, place.ReadyAtMs)
				}
			}
			return resp, nil
		}
	}).running(t)
	for _, limit := range []int32{1, 5, 12, 100} {
		var got []string
		for req, more := (&yardv1.PeekTasklistRequest{Name: "main", Limit: limit}), true; more; more = req.Cursor != "" {
			peek := answerOf[*yardv1.PeekTasklistResponse](t, r, "shop", true, r.PeekTasklist, req)
			if int32(len(peek.Tasks)) > limit || peek.UnreadBatches != 2*int64(rigPartitions) {
				t.Fatalf("%v", peek)
			}
			for _, next := range peek.Tasks {
				got = append(got, fmt.Sprint(next.Task.TaskId, time.Now().UnixMilli()-next.ReadyForMs))
			}
			req.Cursor = peek.NextCursor
		}
		var want []string
		for _, p := range all {
			want = append(want, fmt.Sprint(p.ID.String(), p.ReadyAtMs))
		}
		testkit.Equal(t, fmt.Sprintf("%d at a time", limit), got, want)
	}
}
