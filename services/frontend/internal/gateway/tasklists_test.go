package gateway

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func TestBadTasklistsAreRefused(t *testing.T) {
	onRig(t, func(t *testing.T, r *rig) {
		for path, l := range map[string]*yardv1.Tasklist{
			"/tasklist": nil, "/tasklist/name": {Name: "a.b"}, "/tasklist/priority": {Name: "a", Priority: 6},
			"/tasklist/description": {Name: "a", Description: strings.Repeat("x", 1025)}, "/tasklist/revision": {Name: "a", Revision: -1},
		} {
			wantAt(t, testkit.Err(asked(r, "shop", true, r.PutTasklist, &yardv1.PutTasklistRequest{Tasklist: l})), fault.InvalidArgument, path)
		}
		for path, req := range map[string]*yardv1.ListTasklistsRequest{"/limit": {Limit: 1001}, "/cursor": {Cursor: "a b"}} {
			wantAt(t, testkit.Err(asked(r, "shop", true, r.ListTasklists, req)), fault.InvalidArgument, path)
		}
		if catalog.Tasklists.Count(r.catalog.Catalog, "shop") != 0 {
			t.Errorf("stored %v", catalog.Tasklists.All(r.catalog.Catalog, "shop"))
		}
		wantCode(t, testkit.Err(asked(r, "nobody", true, r.PutTasklist, &yardv1.PutTasklistRequest{Tasklist: &yardv1.Tasklist{Name: "a"}})), fault.NotFound)
	})
}

// listing lets each owner tell of its share of counts, as owners do.
func listing(owner []map[string]*yardv1.ListedTasklist) func(*Deps) {
	tell := func(i int, after string, list int32) []*yardv1.ListedTasklist {
		var all []*yardv1.ListedTasklist
		for _, name := range slices.Sorted(maps.Keys(owner[i])) {
			if name > after && len(all) < int(list) {
				all = append(all, owner[i][name])
			}
		}
		return all
	}
	return func(d *Deps) {
		d.Owners.HistoryDescribe = func(_ context.Context, p int, req *rpcv1.DescribePartitionRequest) (*rpcv1.DescribePartitionResponse, error) {
			return &rpcv1.DescribePartitionResponse{Tasklists: tell(p, req.Tasklist, req.List)}, nil
		}
		d.Owners.TimerDescribe = func(_ context.Context, p int, req *rpcv1.DescribeWaitingRequest) (*rpcv1.DescribeWaitingResponse, error) {
			return &rpcv1.DescribeWaitingResponse{Tasklists: tell(rigPartitions+p, req.Tasklist, req.List)}, nil
		}
	}
}

// No matter who has tasks of a tasklist, and whether it has settings: page by page each comes once, by name, with
// the sum of what all owners have.
func TestTasklistsAreListedPageByPage(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			draw := rand.New(rand.NewPCG(seed, 9))
			want, owners := map[string]*yardv1.ListedTasklist{}, make([]map[string]*yardv1.ListedTasklist, 2*rigPartitions)
			at := func(name string) *yardv1.ListedTasklist {
				if want[name] == nil {
					want[name] = &yardv1.ListedTasklist{Name: name}
				}
				return want[name]
			}
			for i := range owners {
				owners[i] = map[string]*yardv1.ListedTasklist{}
				for range draw.IntN(12) {
					l := &yardv1.ListedTasklist{Name: fmt.Sprint("t", draw.IntN(15)), Ready: draw.Int64N(3), Running: 1, Backoff: draw.Int64N(2)}
					if i >= rigPartitions {
						l = &yardv1.ListedTasklist{Name: l.Name, Waiting: 2}
					}
					if owners[i][l.Name] != nil {
						continue
					}
					owners[i][l.Name] = l
					sum := at(l.Name)
					sum.Ready, sum.Running, sum.Backoff, sum.Waiting = sum.Ready+l.Ready, sum.Running+l.Running, sum.Backoff+l.Backoff, sum.Waiting+l.Waiting
				}
			}
			r := newRig(t, listing(owners))
			for range draw.IntN(6) {
				s := &yardv1.Tasklist{Name: fmt.Sprint("t", draw.IntN(18)), Priority: 2}
				add(t, r.catalog, catalog.Tasklists, "shop", s)
				at(s.Name).Settings = catalog.Tasklists.Of(r.catalog.Catalog, "shop", s.Name)
			}
			for _, limit := range []int32{1, 2, 5, 1000} {
				var names []string
				for cursor, last := "", false; !last; {
					page := answerOf[*yardv1.ListTasklistsResponse](t, r, "shop", true, r.ListTasklists, &yardv1.ListTasklistsRequest{Limit: limit, Cursor: cursor})
					if len(page.Tasklists) > int(limit) {
						t.Fatalf("%d on a page of %d", len(page.Tasklists), limit)
					}
					for _, l := range page.Tasklists {
						names = append(names, l.Name)
						if !proto.Equal(l, want[l.Name]) {
							t.Errorf("seed %d, pages of %d: %v, want %v", seed, limit, l, want[l.Name])
						}
					}
					cursor, last = page.NextCursor, page.NextCursor == ""
				}
				if sorted := slices.Sorted(maps.Keys(want)); !slices.Equal(names, sorted) {
					t.Errorf("seed %d, pages of %d: %v, want %v", seed, limit, names, sorted)
				}
			}
		})
	}
}

// A repeat is the same request, whatever settings of its tasklist and type were put in between: it is answered as
// the first time, and what the log has is kept.
func TestI1_ARepeatIsTheSameWhateverSettingsCameBetween(t *testing.T) {
	for _, after := range []time.Duration{0, 5 * time.Second, 5 * time.Minute} {
		for _, counted := range []bool{true, false} {
			inBubble(t, fmt.Sprintf("%v counted=%v", after, counted), func(t *testing.T) {
				r := newKnowingRig(t)
				set := func(priority, attempts int32) {
					wantCode(t, testkit.Err(asked(r, "shop", true, r.PutTasklist, &yardv1.PutTasklistRequest{Tasklist: &yardv1.Tasklist{Name: "main", Priority: priority}})), "")
					wantCode(t, testkit.Err(asked(r, "shop", true, r.PutType, &yardv1.PutTypeRequest{Type: &yardv1.TaskType{Name: "email", Retry: &yardv1.RetryPolicy{MaxAttempts: attempts}}})), "")
				}
				set(5, 7)
				req := withID(tasks(3), counted)
				first := accepted(t, <-r.submit(t, req))
				set(1, 9)
				time.Sleep(after)
				if counted {
					req.Tries++
				}
				equalIDs(t, accepted(t, <-r.submit(t, req)), first)
				wantOnce(t, r.log, first)
				for _, msgs := range r.log.partitions {
					for _, m := range msgs {
						for _, record := range batchOf(m.Data).Tasks {
							if record.Priority != 5 || record.Policy.GetMaxAttempts() != 7 {
								t.Errorf("stored with priority %d, %d attempts", record.Priority, record.Policy.GetMaxAttempts())
							}
						}
					}
				}
			})
		}
	}
}
