package gateway

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/paging"
	"github.com/yardmaster-io/yardmaster/shared/testkit"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/call"
)

// asked is what a verb answers a request of a domain with.
func asked[Req any](r *rig, domain string, json bool, do func(call.Call, Req, call.Answer), req Req) (codec.Message, error) {
	got := make(chan reply, 1)
	c := r.from(domain)
	c.JSON = json
	do(c, req, func(resp codec.Message, err error) { got <- reply{resp: resp, err: err} })
	o := <-got
	return o.resp, o.err
}

// answerBytesMax is what an answer may have: the least message that a server must take.
const answerBytesMax = 512 << 10

// fits checks how long an answer is in the form it is asked for.
func fits(t *testing.T, json bool, resp codec.Message) {
	t.Helper()
	form := codec.Protobuf
	if json {
		form = codec.JSON
	}
	data, err := codec.Marshal(form, resp)
	if err != nil || len(data) > answerBytesMax {
		t.Fatalf("an answer of %d bytes: %v", len(data), err)
	}
}

// R9: however many domains there are and whatever they are called, lists of them fit into
// answers, and page by page each comes once.
func TestDomainsAreListedPageByPage(t *testing.T) {
	const domains = 5000
	r := newRig(t)
	r.catalog.kv.Forget(catalog.Domains.Key("", "shop"))
	for i := range domains {
		name, letter := fmt.Sprintf("d%04d", i), "x"
		if i > domains-200 {
			letter = "\x01" // six bytes in JSON
		}
		add(t, r.catalog, catalog.Domains, "", &yardv1.Domain{Name: name, Description: strings.Repeat(letter, 4<<10)})
	}
	for _, json := range []bool{false, true} {
		seen, pages := 0, 0
		for req := (&yardv1.ListDomainsRequest{}); seen == 0 || req.Cursor != ""; pages++ {
			resp := answerOf[*yardv1.ListDomainsResponse](t, r, topology.ReservedDomain, json, r.ListDomains, req)
			fits(t, json, resp)
			for _, d := range resp.Domains {
				if want := fmt.Sprintf("d%04d", seen); d.Name != want {
					t.Fatalf("%s comes where %s should", d.Name, want)
				}
				seen++
			}
			req = &yardv1.ListDomainsRequest{Cursor: resp.NextCursor}
		}
		if seen != domains || pages > 80 {
			t.Errorf("%d domains on %d pages", seen, pages)
		}
	}
	got, err := asked(r, topology.ReservedDomain, true, r.ListDomains, &yardv1.ListDomainsRequest{Limit: 3, Cursor: "d0007x"})
	testkit.NoError(t, err)
	if resp := got.(*yardv1.ListDomainsResponse); len(resp.Domains) != 3 || resp.Domains[0].Name != "d0008" || resp.NextCursor != "d0010" {
		t.Errorf("from a name that is gone: %s", resp.NextCursor)
	}
	for path, req := range map[string]*yardv1.ListDomainsRequest{"/limit": {Limit: 1001}, "/cursor": {Cursor: "a b"}} {
		wantAt(t, testkit.Err(asked(r, topology.ReservedDomain, true, r.ListDomains, req)), fault.InvalidArgument, path)
	}
}

// holding has the owners tell of a domain's unfinished tasks.
func holding(inHistory []yardv1.TaskState, inTimer int64) func(*Deps) {
	return func(d *Deps) {
		d.Owners.HistoryList = func(_ context.Context, p int, req *rpcv1.ListTasksRequest) (*rpcv1.ListTasksResponse, error) {
			resp := &rpcv1.ListTasksResponse{}
			for _, s := range inHistory {
				if p == 1 && req.Domain == "shop" && slices.Contains(req.Filter.States, s) {
					resp.Tasks = append(resp.Tasks, &yardv1.Task{State: s})
				}
			}
			return resp, nil
		}
		d.Owners.TimerDescribe = func(_ context.Context, p int, req *rpcv1.DescribeWaitingRequest) (*rpcv1.DescribeWaitingResponse, error) {
			if p != 2 || req.Domain != "shop" || req.Tasklist != "" {
				return &rpcv1.DescribeWaitingResponse{}, nil
			}
			return &rpcv1.DescribeWaitingResponse{Waiting: inTimer}, nil
		}
	}
}

// R9: a domain is deleted where it holds nothing, otherwise the answer says what it holds.
func TestDomainsAreDeletedWhereTheyHoldNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		remove := func(r *rig, req *yardv1.DeleteDomainRequest) (codec.Message, error) {
			return asked(r, topology.ReservedDomain, true, r.DeleteDomain, req)
		}
		shop := &yardv1.DeleteDomainRequest{Name: "shop"}
		r := newRig(t, holding([]yardv1.TaskState{yardv1.TaskState_TASK_STATE_READY, yardv1.TaskState_TASK_STATE_RUNNING, yardv1.TaskState_TASK_STATE_READY}, 7))
		_, err := remove(r, shop)
		e := faultOf(t, err, fault.FailedPrecondition)
		if len(e.Detail) != 3 || e.Detail["ready"] != "2" || e.Detail["running"] != "1" || e.Detail["waiting"] != "7" {
			t.Errorf("detail %v", e.Detail)
		}
		if r.catalog.Domain("shop") == nil {
			t.Fatal("it is gone")
		}

		r = newRig(t, func(d *Deps) {
			d.Owners.TimerDescribe = func(context.Context, int, *rpcv1.DescribeWaitingRequest) (*rpcv1.DescribeWaitingResponse, error) {
				return nil, fault.New(fault.Unavailable, "nobody")
			}
		})
		_, err = remove(r, shop)
		wantCode(t, err, fault.Unavailable)
		if r.catalog.Domain("shop") == nil {
			t.Fatal("it is gone, and no one knows what it held")
		}

		r = newRig(t, holding([]yardv1.TaskState{yardv1.TaskState_TASK_STATE_COMPLETED}, 0))
		_, err = remove(r, &yardv1.DeleteDomainRequest{Name: "shop", Revision: 3})
		wantCode(t, err, fault.Stale)
		add(t, r.catalog, catalog.Domains, "", &yardv1.Domain{Name: "shop", RetentionMs: 5})
		got, err := remove(r, shop)
		if err != nil || got.(*yardv1.DeleteDomainResponse).Domain.RetentionMs != 5 {
			t.Fatalf("got %v, %v", got, err)
		}
		o := <-r.submit(t, tasks(1))
		if e := faultOf(t, o.err, fault.NotFound); !strings.Contains(e.Message, "domains.put") {
			t.Errorf("no next step: %v", e)
		}
		_, err = remove(r, shop)
		wantCode(t, err, fault.NotFound)
		for path, req := range map[string]*yardv1.DeleteDomainRequest{"/name": {Name: "admin"}, "/revision": {Name: "shop", Revision: -1}} {
			wantAt(t, testkit.Err(remove(r, req)), fault.InvalidArgument, path)
		}
	})
}

// farEach is how many tasks that are not due soon each partition of farTasks has.
const farEach = 25

// farTasks are those of a partition from a position on. They have a time of creation.
func farTasks(p int, at string, limit int) *rpcv1.ListTasksResponse {
	resp := &rpcv1.ListTasksResponse{}
	from, _ := strconv.Atoi(at) // the first page has no position
	for n := from; n < farEach && len(resp.Tasks) < limit; n++ {
		id := ids.NewTaskID(time.UnixMilli(int64(5000+n)), p, uint64(n))
		resp.Tasks = append(resp.Tasks, &yardv1.Task{TaskId: id.String(), CreatedAtMs: 1, ErrorMessage: strings.Repeat("\x01", 4<<10)})
	}
	if end := from + len(resp.Tasks); end < farEach {
		resp.More, resp.End = true, strconv.Itoa(end)
	}
	return resp
}

// R9: tasks are listed page by page, no matter who has them and wherever its answers are cut: each
// once, newest first, and then those that are not due soon.
func TestTasksAreListedPageByPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const each, ownersCut = 57, 10
		stores := make([][]string, 2*rigPartitions)
		var all []string
		for i := range each * len(stores) {
			age := i * 37 % (each * len(stores))
			id := ids.NewTaskID(time.UnixMilli(int64(1000+age)), 0, uint64(i)).String()
			owner := age / each // most owners' tasks are of one time, the first one's of all
			if age%3 == 0 {
				owner = 0
			}
			stores[owner], all = append(stores[owner], id), append(all, id)
		}
		stores[rigPartitions] = append(stores[rigPartitions], stores[0][:3]...) // on their way: in two stores
		tell := func(owner int, f *yardv1.ListRequest) (*rpcv1.ListTasksResponse, error) {
			resp := &rpcv1.ListTasksResponse{}
			for _, id := range slices.Backward(slices.Sorted(slices.Values(stores[owner]))) {
				if f.Cursor != "" && id >= f.Cursor {
					continue
				}
				if len(resp.Tasks) == min(int(f.Limit), ownersCut) {
					resp.More = true
					break
				}
				resp.Tasks = append(resp.Tasks, &yardv1.Task{TaskId: id, ErrorMessage: strings.Repeat("\x01", 4<<10)})
			}
			return resp, nil
		}
		r := newRig(t, func(d *Deps) {
			d.Owners.HistoryList = func(_ context.Context, p int, req *rpcv1.ListTasksRequest) (*rpcv1.ListTasksResponse, error) {
				return tell(p, req.Filter)
			}
			d.Owners.TimerList = func(_ context.Context, p int, req *rpcv1.ListTasksRequest) (*rpcv1.ListTasksResponse, error) {
				if at, isFar := strings.CutPrefix(req.Filter.Cursor, paging.Far); isFar {
					return farTasks(p, at, min(int(req.Filter.Limit), ownersCut)), nil
				}
				return tell(p+rigPartitions, req.Filter)
			}
		})
		slices.Sort(all)
		slices.Reverse(all)
		for _, limit := range []int32{1, 7, 1000} {
			var seen []string
			far := map[string]int{}
			for cursor, last := "", false; !last; {
				resp := answerOf[*yardv1.ListResponse](t, r, "shop", true, r.List, &yardv1.ListRequest{Limit: limit, Cursor: cursor})
				fits(t, true, resp)
				if len(resp.Tasks) > int(limit) {
					t.Fatalf("%d tasks on a page of %d", len(resp.Tasks), limit)
				}
				for _, task := range resp.Tasks {
					if task.CreatedAtMs != 0 {
						far[task.TaskId]++
						continue
					}
					seen = append(seen, task.TaskId)
				}
				cursor, last = resp.NextCursor, resp.NextCursor == ""
			}
			if twice := func(n int) bool { return n > 1 }; !slices.Equal(seen, all) || len(far) != rigPartitions*farEach || slices.ContainsFunc(slices.Collect(maps.Values(far)), twice) {
				t.Errorf("pages of %d: %d tasks of %d, or in another order, and %v", limit, len(seen), len(all), far)
			}
		}
		wantAt(t, testkit.Err(asked(r, "shop", true, r.List, &yardv1.ListRequest{Cursor: "x"})), fault.InvalidArgument, "/cursor")
	})
}
