package partition_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/services/history/internal/queries"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// pages lists all tasks of a filter, in pages of a size.
func pages(t *testing.T, o *partition.Owner, filter *yardv1.ListRequest, limit int32) (all []string) {
	t.Helper()
	filter = filter.CloneVT()
	for filter.Limit = limit; ; {
		page, err := queries.Of(o).List(t.Context(), &rpcv1.ListTasksRequest{Domain: "shop", Filter: filter})
		testkit.NoError(t, err)
		for _, task := range page.Tasks {
			all = append(all, task.TaskId)
		}
		if !page.More {
			return all
		}
		if filter.Cursor != "" && page.End >= filter.Cursor {
			t.Fatalf("the page after %s ends at %s", filter.Cursor, page.End)
		}
		filter.Cursor = page.End
	}
}

// Tasks are listed once each, the newest first, in pages of any size, whatever the order in which they ended, and by any filter.
func TestTasksAreListedOnceInPagesOfAnySize(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		o := s.serves(s.deps("a"))
		const n = 40
		var all []string
		began := time.Now()
		created := func(i uint64) time.Time { return began.Add(-time.Duration(i) * time.Second) }
		s.mu.Lock()
		s.works(logv1.EventKind_EVENT_KIND_COMPLETED)
		ends := s.worker
		s.worker = func(tr ids.Trigger) { // these end, the newest first
			if at := tr.ID.Time(); !at.After(created(n/2)) && at.After(created(n*3/4)) {
				ends(tr)
			}
		}
		s.mu.Unlock()
		for i := range uint64(n) {
			r := task(ids.NewTaskID(created(i), 0, i), "shop")
			if i%2 == 0 {
				r.Type, r.Group, r.Headers = "even", "acme", []*logv1.Header{{Name: "a", Value: "b"}}
			}
			all = append(all, ids.TaskID(r.Id).String())
			s.submit(3, r)
			time.Sleep(time.Second)
		}
		even := slices.Collect(func(yield func(string) bool) {
			for i := 0; i < len(all) && yield(all[i]); i += 2 {
			}
		})
		for name, c := range map[string]*struct {
			filter yardv1.ListRequest
			want   []string
		}{
			"all":     {yardv1.ListRequest{}, all},
			"state":   {yardv1.ListRequest{States: []yardv1.TaskState{yardv1.TaskState_TASK_STATE_COMPLETED}}, all[n/2 : n*3/4]},
			"type":    {yardv1.ListRequest{Type: "even"}, even},
			"group":   {yardv1.ListRequest{Group: "acme"}, even},
			"headers": {yardv1.ListRequest{Headers: map[string]string{"a": "b"}}, even},
		} {
			for _, limit := range []int32{1, 3, n, 100} {
				if got := pages(t, o, &c.filter, limit); !slices.Equal(got, c.want) {
					t.Errorf("%s, in pages of %d: %d tasks of %d", name, limit, len(got), len(c.want))
				}
			}
		}
	})
}

// listens does something once a list has read the archive.
type listens struct {
	partition.Reader
	during func()
}

func (r listens) Finished(ctx context.Context, domain string, before ids.TaskID, limit int, take func(*logv1.Record) bool) (ids.TaskID, error) {
	end, err := r.Reader.Finished(ctx, domain, before, limit, take)
	r.during()
	return end, err
}

// A dead task that is redriven while its list reads the archive is listed as it is then.
func TestATaskIsListedThatComesBackMeanwhile(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		s.works(logv1.EventKind_EVENT_KIND_FAILED)
		d, id := s.deps("a"), newID(1)
		d.Reader = listens{d.Reader, func() {
			s.mu.Lock()
			s.worker = nil
			s.mu.Unlock()
			back := task(id, "shop")
			back.Parkings, back.Redriven = 1, &logv1.Redriven{Count: 1, Seq: 1, Requests: []uint64{7}}
			s.submit(3, back)
			time.Sleep(time.Second)
		}}
		o := s.serves(d)
		s.submit(3, task(id, "shop"))
		time.Sleep(time.Minute)
		for _, c := range []struct {
			states []yardv1.TaskState
			want   int
		}{{nil, 1}, {[]yardv1.TaskState{yardv1.TaskState_TASK_STATE_DEAD}, 0}} {
			page, err := queries.Of(o).List(t.Context(), &rpcv1.ListTasksRequest{Domain: "shop", Filter: &yardv1.ListRequest{States: c.states}})
			if err != nil || len(page.Tasks) != c.want || c.want > 0 && page.Tasks[0].Redrives != 1 {
				t.Errorf("of %v: %v, %v", c.states, page, err)
			}
		}
	})
}
