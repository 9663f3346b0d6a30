package gateway

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/protobuf/proto"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// putLimit creates or changes a limit of the rig's domain.
func (r *rig) putLimit(l *yardv1.Limit) (*yardv1.Limit, error) {
	got, err := asked(r, "shop", true, r.PutLimit, &yardv1.PutLimitRequest{Limit: l})
	if err != nil {
		return nil, err
	}
	return got.(*yardv1.PutLimitResponse).Limit, nil
}

// putType creates or changes a type of the rig's domain.
func (r *rig) putType(t *yardv1.TaskType) error {
	_, err := asked(r, "shop", true, r.PutType, &yardv1.PutTypeRequest{Type: t})
	return err
}

func TestBadLimitsAreRefused(t *testing.T) {
	onRig(t, func(t *testing.T, r *rig) {
		for path, l := range map[string]*yardv1.Limit{
			"/limit": {Name: "a"}, "/limit/name": {Name: "a.b", MaxConcurrency: 1},
			"/limit/description": {Name: "a", MaxConcurrency: 1, Description: strings.Repeat("x", 1025)},
			"/limit/revision":    {Name: "a", MaxConcurrency: 1, Revision: -1},
		} {
			_, err := r.putLimit(l)
			wantAt(t, err, fault.InvalidArgument, path)
		}
		_, err := r.putLimit(nil)
		wantAt(t, err, fault.InvalidArgument, "/limit")
		for path, req := range map[string]*yardv1.ListLimitsRequest{"/limit": {Limit: 1001}, "/cursor": {Cursor: "a b"}} {
			wantAt(t, testkit.Err(asked(r, "shop", true, r.ListLimits, req)), fault.InvalidArgument, path)
		}
		wantCode(t, testkit.Err(asked(r, "shop", true, r.GetLimit, &yardv1.GetLimitRequest{Name: "a.b"})), fault.InvalidArgument)
		wantCode(t, testkit.Err(asked(r, "shop", true, r.DeleteLimit, &yardv1.DeleteLimitRequest{Name: "a", Revision: -1})), fault.InvalidArgument)
		wantCode(t, testkit.Err(asked(r, "nobody", true, r.PutLimit, &yardv1.PutLimitRequest{Limit: &yardv1.Limit{Name: "a", MaxConcurrency: 1}})), fault.NotFound)
		wantCode(t, testkit.Err(asked(r, "nobody", true, r.GetLimit, &yardv1.GetLimitRequest{Name: "a"})), fault.NotFound)
		wantCode(t, testkit.Err(asked(r, "nobody", true, r.ListLimits, &yardv1.ListLimitsRequest{})), fault.NotFound)
		if keys := r.catalog.kv.Stored(); len(keys) != 1 {
			t.Errorf("stored %v", keys)
		}
	})
}

// A type names limits that exist, also one that another frontend stored a moment ago.
func TestTypesNameLimitsThatExist(t *testing.T) {
	onRig(t, func(t *testing.T, r *rig) {
		testkit.NoError(t, testkit.Err(r.putLimit(&yardv1.Limit{Name: "known", MaxConcurrency: 1})))
		r.catalog.elsewhere(func() {
			add(t, r.catalog, catalog.Limits, "shop", &yardv1.Limit{Name: "elsewhere", MaxConcurrency: 1})
			add(t, r.catalog, catalog.Limits, "other", &yardv1.Limit{Name: "foreign", MaxConcurrency: 1})
		})
		err := r.putType(&yardv1.TaskType{Name: "pay", Limits: []string{"known", "foreign"}})
		if e := faultOf(t, err, fault.FailedPrecondition); e.Path != "/type/limits/1" || !strings.HasPrefix(e.Message, `there is no limit "foreign": create it with limits.put`) {
			t.Errorf("got %v", e)
		}
		if catalog.Types.Of(r.catalog.Catalog, "shop", "pay") != nil {
			t.Error("it was stored")
		}
		testkit.NoError(t, r.putType(&yardv1.TaskType{Name: "pay", Limits: []string{"known", "elsewhere"}}))
		testkit.Equal(t, "stored", catalog.Types.Of(r.catalog.Catalog, "shop", "pay").GetLimits(), []string{"known", "elsewhere"})
	})
}

// A limit goes once no type names it any more; until then the refusal names some that do.
func TestLimitsInUseAreNotDeleted(t *testing.T) {
	onRig(t, func(t *testing.T, r *rig) {
		for _, name := range []string{"acme", "acme-2"} {
			testkit.NoError(t, testkit.Err(r.putLimit(&yardv1.Limit{Name: name, MaxConcurrency: 1})))
		}
		remove := func() error {
			_, err := asked(r, "shop", true, r.DeleteLimit, &yardv1.DeleteLimitRequest{Name: "acme"})
			return err
		}
		add(t, r.catalog, catalog.Types, "other", &yardv1.TaskType{Name: "x", Limits: []string{"acme"}})
		var names []string
		for i := range 7 {
			name := fmt.Sprint("type-", i)
			testkit.NoError(t, r.putType(&yardv1.TaskType{Name: name, Limits: []string{"acme-2", "acme"}}))
			names = append(names, name)
			want := strings.Join(names, ", ") + ":"
			if i >= 5 {
				want = fmt.Sprintf("%s and %d more:", strings.Join(names[:5], ", "), i-4)
			}
			if e := faultOf(t, remove(), fault.FailedPrecondition); e.Path != "/name" || !strings.Contains(e.Message, "shared by "+want) {
				t.Errorf("got %v, want %s", e, want)
			}
		}
		for _, name := range names {
			if catalog.Limits.Of(r.catalog.Catalog, "shop", "acme") == nil {
				t.Fatalf("it is gone, and %s names it", name)
			}
			testkit.NoError(t, r.putType(&yardv1.TaskType{Name: name, Limits: []string{"acme-2"}}))
		}
		wantCode(t, remove(), "")
		wantCode(t, remove(), fault.NotFound)
	})
}

// slotsOf has the matching shards tell of slots, as they do of what is wanted only: a domain may have tens of thousands of limits (I14).
func slotsOf(told ...*rpcv1.DescribeShardResponse) func(*Deps) {
	return func(d *Deps) {
		d.Owners.MatchingDescribe = func(_ context.Context, m int, req *rpcv1.DescribeShardRequest) (*rpcv1.DescribeShardResponse, error) {
			if req.ListLimits > 0 {
				return told[m], nil
			}
			out := &rpcv1.DescribeShardResponse{Slots: map[string]int32{}, Limits: map[string]int32{}}
			for typ, n := range told[m].Slots {
				if req.Domain == "shop" && (req.LimitsInUse && n > 0 || slices.Contains(req.Limits, ids.TypeLimit(typ))) {
					out.Slots[typ] = n
				}
			}
			for ref, n := range told[m].Limits {
				if req.Domain == "shop" && (req.LimitsInUse && n > 0 || slices.Contains(req.Limits, ref)) {
					out.Limits[ref] = n
				}
			}
			return out, nil
		}
	}
}

// The answer has each limit that may hold up the tasklist, with the most that a shard knows to be in use.
func TestDescribeHasAllLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, slotsOf(
			&rpcv1.DescribeShardResponse{
				Slots:  map[string]int32{"pay": 3, "idle": 0},
				Limits: map[string]int32{"domain": 9, "tasklist/main": 4, "tasklist/other": 5, "shared/acme": 2, "shared/pay": 1, "shared/idle": 0},
			},
			&rpcv1.DescribeShardResponse{
				Slots:  map[string]int32{"pay": 2, "gone": 1},
				Limits: map[string]int32{"domain": 8, "tasklist/main": 6, "shared/acme": 7},
			},
		))
		add(t, r.catalog, catalog.Domains, "", &yardv1.Domain{Name: "shop", MaxConcurrency: 20})
		add(t, r.catalog, catalog.Tasklists, "shop", &yardv1.Tasklist{Name: "main", MaxConcurrency: 11})
		add(t, r.catalog, catalog.Types, "shop", &yardv1.TaskType{Name: "pay", MaxConcurrency: 12})
		add(t, r.catalog, catalog.Limits, "shop", &yardv1.Limit{Name: "acme", MaxConcurrency: 13})
		add(t, r.catalog, catalog.Limits, "shop", &yardv1.Limit{Name: "pay", MaxConcurrency: 14})
		got, err := asked(r, "shop", true, r.DescribeTasklist, &yardv1.DescribeTasklistRequest{Tasklist: "main"})
		testkit.NoError(t, err)
		want := &yardv1.DescribeTasklistResponse{Tasklist: "main", Slots: []*yardv1.SlotUse{
			{Ref: "domain", InUse: 9, Limit: 20},
			{Ref: "shared/acme", InUse: 7, Limit: 13},
			{Ref: "shared/pay", InUse: 1, Limit: 14},
			{Ref: "tasklist/main", InUse: 6, Limit: 11},
			{Ref: "type/gone", Type: "gone", InUse: 1},
			{Ref: "type/pay", Type: "pay", InUse: 3, Limit: 12},
		}}
		if !proto.Equal(got.(*yardv1.DescribeTasklistResponse), want) {
			t.Errorf("got %v, want %v", got, want)
		}
		for name, slots := range map[string]int32{"acme": 7, "pay": 1} {
			got, err := asked(r, "shop", true, r.GetLimit, &yardv1.GetLimitRequest{Name: name})
			if resp, _ := got.(*yardv1.GetLimitResponse); err != nil || resp.SlotsInUse != slots || resp.Limit.MaxConcurrency < 13 {
				t.Errorf("%s: got %v, %v", name, resp, err)
			}
		}
	})
}
