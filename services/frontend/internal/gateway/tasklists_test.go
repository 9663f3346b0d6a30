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

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/validate"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// R9: put and delete name the revision that they mean, and tell the new one.
func TestTasklistsHaveRevisions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		put := func(priority int32, revision int64) (*yardv1.Tasklist, error) {
			got, err := asked(r, "shop", true, r.PutTasklist, &yardv1.PutTasklistRequest{Tasklist: &yardv1.Tasklist{Name: "mail", Priority: priority, Revision: revision}})
			if err != nil {
				return nil, err
			}
			return got.(*yardv1.PutTasklistResponse).Tasklist, nil
		}
		first, err := put(1, 0)
		if err != nil || first.Revision == 0 {
			t.Fatalf("got %v, %v", first, err)
		}
		next, err := put(2, first.Revision)
		if err != nil || next.Revision <= first.Revision {
			t.Fatalf("got %v, %v", next, err)
		}
		_, err = put(3, first.Revision)
		wantCode(t, err, fault.Stale)
		got, err := asked(r, "shop", true, r.GetTasklist, &yardv1.GetTasklistRequest{Name: "mail"})
		if err != nil || !proto.Equal(got.(*yardv1.GetTasklistResponse).Tasklist, next) {
			t.Errorf("got %v, %v", got, err)
		}
		_, err = asked(r, "shop", true, r.DeleteTasklist, &yardv1.DeleteTasklistRequest{Name: "none"})
		if e := wantCode(t, err, fault.NotFound); !strings.Contains(e.Message, "tasklists.put") {
			t.Errorf("no next step: %v", e)
		}
		got, err = asked(r, "shop", true, r.DeleteTasklist, &yardv1.DeleteTasklistRequest{Name: "mail", Revision: next.Revision})
		if err != nil || got.(*yardv1.DeleteTasklistResponse).Tasklist.Priority != 2 {
			t.Errorf("got %v, %v", got, err)
		}
		_, err = asked(r, "shop", true, r.GetTasklist, &yardv1.GetTasklistRequest{Name: "mail"})
		wantCode(t, err, fault.NotFound)
	})
}

func TestBadTasklistsAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		for path, l := range map[string]*yardv1.Tasklist{
			"/tasklist": nil, "/tasklist/name": {Name: "a.b"}, "/tasklist/priority": {Name: "a", Priority: 6},
			"/tasklist/description": {Name: "a", Description: strings.Repeat("x", 1025)}, "/tasklist/revision": {Name: "a", Revision: -1},
		} {
			_, err := asked(r, "shop", true, r.PutTasklist, &yardv1.PutTasklistRequest{Tasklist: l})
			if e := wantCode(t, err, fault.InvalidArgument); e.Path != path {
				t.Errorf("got %v, want %s", e, path)
			}
		}
		for path, req := range map[string]*yardv1.ListTasklistsRequest{"/limit": {Limit: 1001}, "/cursor": {Cursor: "a b"}} {
			_, err := asked(r, "shop", true, r.ListTasklists, req)
			if e := wantCode(t, err, fault.InvalidArgument); e.Path != path {
				t.Errorf("got %v", e)
			}
		}
		if catalog.Tasklists.Count(r.catalog.Catalog, "shop") != 0 {
			t.Errorf("stored %v", catalog.Tasklists.All(r.catalog.Catalog, "shop"))
		}
		_, err := asked(r, "nobody", true, r.PutTasklist, &yardv1.PutTasklistRequest{Tasklist: &yardv1.Tasklist{Name: "a"}})
		wantCode(t, err, fault.NotFound)
	})
}

// R9, I14: as TestTypesOfADomainAreBounded.
func TestTasklistsOfADomainAreBounded(t *testing.T) {
	testkit.Slow(t, "fills a domain to its bound")
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		for i := range validate.TasklistsMax {
			name := fmt.Sprint("t", i)
			add(t, r.catalog, catalog.Tasklists, "shop", &yardv1.Tasklist{Name: name})
		}
		for name, code := range map[string]fault.Code{"t7": "", "new": fault.FailedPrecondition} {
			_, err := asked(r, "shop", true, r.PutTasklist, &yardv1.PutTasklistRequest{Tasklist: &yardv1.Tasklist{Name: name}})
			wantCode(t, err, code)
		}
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
			return &rpcv1.DescribePartitionResponse{Listed: true, Tasklists: tell(p, req.Tasklist, req.List)}, nil
		}
		d.Owners.TimerDescribe = func(_ context.Context, p int, req *rpcv1.DescribeWaitingRequest) (*rpcv1.DescribeWaitingResponse, error) {
			return &rpcv1.DescribeWaitingResponse{Listed: true, Tasklists: tell(rigPartitions+p, req.Tasklist, req.List)}, nil
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
					got, err := asked(r, "shop", true, r.ListTasklists, &yardv1.ListTasklistsRequest{Limit: limit, Cursor: cursor})
					testkit.NoError(t, err)
					page := got.(*yardv1.ListTasklistsResponse)
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

// An owner of the version before tells of one tasklist whatever it is asked: no list without its share.
func TestTasklistsAreNotListedInPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, old := range []int{1, rigPartitions + 1} {
			owners := make([]map[string]*yardv1.ListedTasklist, 2*rigPartitions)
			r := newRig(t, listing(owners), func(d *Deps) {
				history, timer := d.Owners.HistoryDescribe, d.Owners.TimerDescribe
				d.Owners.HistoryDescribe = func(ctx context.Context, p int, req *rpcv1.DescribePartitionRequest) (*rpcv1.DescribePartitionResponse, error) {
					if p == old {
						return &rpcv1.DescribePartitionResponse{Ready: 1}, nil
					}
					return history(ctx, p, req)
				}
				d.Owners.TimerDescribe = func(ctx context.Context, p int, req *rpcv1.DescribeWaitingRequest) (*rpcv1.DescribeWaitingResponse, error) {
					if rigPartitions+p == old {
						return &rpcv1.DescribeWaitingResponse{Waiting: 1}, nil
					}
					return timer(ctx, p, req)
				}
			})
			_, err := asked(r, "shop", true, r.ListTasklists, &yardv1.ListTasklistsRequest{})
			wantCode(t, err, fault.FailedPrecondition)
		}
	})
}

// A repeat is the same request, whatever settings of its tasklist and type were put in between: it is answered as
// the first time, and what the log has is kept.
func TestI1_ARepeatIsTheSameWhateverSettingsCameBetween(t *testing.T) {
	for _, after := range []time.Duration{0, 5 * time.Second, 5 * time.Minute} {
		for _, counted := range []bool{true, false} {
			t.Run(fmt.Sprintf("%v counted=%v", after, counted), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newKnowingRig(t)
					set := func(priority, attempts int32) {
						_, err := asked(r, "shop", true, r.PutTasklist, &yardv1.PutTasklistRequest{Tasklist: &yardv1.Tasklist{Name: "main", Priority: priority}})
						wantCode(t, err, "")
						_, err = asked(r, "shop", true, r.PutType, &yardv1.PutTypeRequest{Type: &yardv1.TaskType{Name: "email", Retry: &yardv1.RetryPolicy{MaxAttempts: attempts}}})
						wantCode(t, err, "")
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
			})
		}
	}
}
