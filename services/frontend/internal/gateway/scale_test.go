package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/shared/testkit"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/validate"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/scaling"
)

// sets runs the rig's scaler until the test ends.
func (r *rig) sets(t *testing.T) *rig {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- r.Scaling.Scale(ctx) }()
	t.Cleanup(func() {
		stop()
		testkit.Equal(t, "the end", <-ended, nil)
	})
	return r
}

// putBounds has the engine set the partitions of tasklist main.
func (r *rig) putBounds(least, most int32) error {
	_, err := asked(r, "shop", true, r.PutTasklist, &yardv1.PutTasklistRequest{Tasklist: &yardv1.Tasklist{Name: "main", Partitions: least, PartitionsMax: most}})
	return err
}

// comes tells gateways each second for so long what comes into as many partitions of tasklist main as there are.
func comes(t *testing.T, seconds int, perSecond float64, all ...*rig) {
	t.Helper()
	for range seconds {
		load := &rpcv1.TasklistLoad{}
		n := all[0].catalog.Partitions("shop", "main")
		for p := range n {
			load.Partitions = append(load.Partitions, &rpcv1.PartitionLoad{Domain: "shop", Tasklist: "main", TasklistPartition: int32(p), PerSecond: perSecond / float64(n)})
		}
		load.Partitions = append(load.Partitions, &rpcv1.PartitionLoad{Domain: "shop", Tasklist: "other", PerSecond: 1e6})
		for _, r := range all {
			r.TakeTasklistLoad(testkit.Encoded(t, load))
		}
		time.Sleep(time.Second)
	}
}

// now is over how many partitions main is spread, as a description and the settings tell: 0 = one.
func (r *rig) tells(t *testing.T) (now int32) {
	t.Helper()
	d, err := asked(r, "shop", true, r.DescribeTasklist, &yardv1.DescribeTasklistRequest{Tasklist: "main"})
	testkit.NoError(t, err)
	l, err := asked(r, "shop", true, r.GetTasklist, &yardv1.GetTasklistRequest{Name: "main"})
	testkit.NoError(t, err)
	described, got := d.(*yardv1.DescribeTasklistResponse), l.(*yardv1.GetTasklistResponse)
	least, most := max(1, got.Tasklist.Partitions), got.Tasklist.PartitionsMax
	if described.Partitions != got.Partitions || described.PartitionsLeast != least || described.PartitionsMax != most {
		t.Errorf("described as %v, settings %v", described, got)
	}
	return got.Partitions
}

// A rate that lasts for a minute spreads a tasklist, one that is gone for two minutes brings it together again; polls follow, and who asks
// learns it. A put of the settings keeps the number, within its bounds. Tasklists whose settings do not say so stay as they are.
func TestTheEngineSetsPartitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t).running(t).sets(t)
		wantCode(t, r.putBounds(0, 8), "")
		testkit.Equal(t, "at first", r.tells(t), 0)
		comes(t, 55, 25_000, r)
		testkit.Equal(t, "after less than a minute", r.tells(t), 0)
		comes(t, 30, 25_000, r)
		testkit.Equal(t, "after more than a minute", r.tells(t), 3)
		if got := r.spreadOf(t, 3); fmt.Sprint(got) != "[0 1 2]" {
			t.Errorf("polls went to %v", got)
		}
		wantCode(t, r.putBounds(2, 8), "")
		testkit.Equal(t, "the settings were put", r.tells(t), 3)
		comes(t, 180, 25_000, r)
		testkit.Equal(t, "the rate is the same", r.tells(t), 3)
		comes(t, 110, 0, r)
		testkit.Equal(t, "nothing comes for less than two minutes", r.tells(t), 3)
		comes(t, 40, 0, r)
		testkit.Equal(t, "nothing comes for more than two minutes", r.tells(t), 2)
		testkit.Equal(t, "scales", len(r.catalog.scales("shop")), 1)
	})
}

// Frontends that hear the same write one record, once per change; a frontend that is mistaken about what is stored does not undo it.
func TestOneFrontendWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newRig(t).running(t).sets(t)
		b := newRig(t, func(d *Deps) { d.Catalog, d.Settings = a.catalog.Catalog, a.catalog.kv }).running(t).sets(t)
		wantCode(t, a.putBounds(0, 8), "")
		puts := int64(a.catalog.kv.Revision())
		comes(t, 600, 45_000, a, b)
		if s := catalog.Scales.Of(a.catalog.Catalog, "shop", "main"); s.Partitions != 5 || int64(a.catalog.kv.Revision()) != puts+1 || s.Revision != puts+1 {
			t.Errorf("%+v after %d puts", s, int64(a.catalog.kv.Revision())-puts)
		}
		comes(t, 600, 0, a, b)
		if s := catalog.Scales.Of(a.catalog.Catalog, "shop", "main"); s.Partitions != 1 || int64(a.catalog.kv.Revision()) != puts+2 {
			t.Errorf("%+v after %d puts", s, int64(a.catalog.kv.Revision())-puts)
		}
	})
}

// What cannot be stored is decided again after as long, and nothing else changes meanwhile.
func TestAScaleThatIsNotStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t).running(t).sets(t)
		wantCode(t, r.putBounds(0, 8), "")
		key := catalog.Scales.Key("shop", "main")
		for what, breaks := range map[string]func(){
			"another one is stored": func() { r.catalog.elsewhere(func() { r.catalog.kv.Store(key, `{"partitions":3}`) }) },
			"no one answers":        func() { r.catalog.breaks(errors.New("no one answers")) },
		} {
			breaks()
			comes(t, 90, 45_000, r)
			testkit.Equal(t, fmt.Sprintf("%s: partitions", what), r.tells(t), 0)
			r.catalog.breaks(nil)
			r.catalog.elsewhere(func() { r.catalog.kv.Forget(key) })
		}
		comes(t, 90, 45_000, r)
		testkit.Equal(t, "stored again", r.tells(t), 5)
	})
}

// A scale is deleted where the settings do not leave it to the engine any more, also if they were deleted elsewhere: what they are set to
// later begins again.
func TestScalesAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t).running(t).sets(t)
		wantCode(t, r.putBounds(0, 8), "")
		for _, key := range []string{"main", "gone"} {
			testkit.NoError(t, catalog.Scales.Swap(t.Context(), r.catalog.kv, "shop", key, &rpcv1.TasklistScale{Partitions: 6}, 0))
		}
		time.Sleep(time.Minute)
		if all := r.catalog.scales("shop"); !slices.Equal(all, []string{"main"}) || r.tells(t) != 6 {
			t.Errorf("%v", all)
		}
		wantCode(t, r.putBounds(2, 0), "")
		testkit.Equal(t, "partitions at once", r.catalog.Partitions("shop", "main"), 2)
		r.catalog.breaks(errors.New("no one answers"))
		time.Sleep(time.Minute)
		r.catalog.breaks(nil)
		time.Sleep(time.Minute)
		if all := r.catalog.scales("shop"); len(all) != 0 {
			t.Errorf("left: %v", all)
		}
		wantCode(t, r.putBounds(0, 8), "")
		testkit.Equal(t, "set again", r.tells(t), 0)
	})
}

// What cannot be is refused whole.
func TestBoundsOfPartitions(t *testing.T) {
	onRig(t, func(t *testing.T, r *rig) {
		for _, bad := range [][2]int32{{0, 1}, {0, -1}, {0, 65}, {4, 3}} {
			err := r.putBounds(bad[0], bad[1])
			wantAt(t, err, fault.InvalidArgument, "/tasklist/partitions_max")
		}
		if catalog.Tasklists.Of(r.catalog.Catalog, "shop", "main") != nil {
			t.Error("something is stored")
		}
		for _, good := range [][2]int32{{0, 2}, {1, 64}, {4, 4}, {64, 64}, {64, 0}} {
			wantCode(t, r.putBounds(good[0], good[1]), "")
		}
		wantCode(t, r.putBounds(0, 0), "")
		for i := range validate.PartitionedMax {
			name := fmt.Sprint("l", i)
			add(t, r.catalog, catalog.Tasklists, "shop", &yardv1.Tasklist{Name: name, Partitions: int32(i % 2 * 2), PartitionsMax: int32((i + 1) % 2 * 2)})
		}
		wantAt(t, r.putBounds(0, 2), fault.FailedPrecondition, "/tasklist/partitions_max")
		wantAt(t, r.putBounds(2, 0), fault.FailedPrecondition, "/tasklist/partitions")
		wantCode(t, r.putBounds(1, 0), "")
	})
}

// How it is set is a setting.
func TestScalingIsASetting(t *testing.T) {
	for path, change := range map[string]func(*scaling.Config){
		"scale.every":            func(c *scaling.Config) { c.Every = 0 },
		"scale.tasks_per_second": func(c *scaling.Config) { c.TasksPerSecond = 0 },
		"scale.up_after":         func(c *scaling.Config) { c.UpAfter = time.Millisecond },
		"scale.down_after":       func(c *scaling.Config) { c.DownAfter = 25 * time.Hour },
	} {
		c := DefaultConfig()
		change(&c.Scale)
		if problems := c.Validate(); len(problems) != 1 || problems[0].Path != path {
			t.Errorf("%s: %v", path, problems)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(d *Deps) {
			d.Config.Scale = scaling.Config{Every: 100 * time.Millisecond, TasksPerSecond: 100, UpAfter: 2 * time.Second, DownAfter: 3 * time.Second}
		}).running(t).sets(t)
		wantCode(t, r.putBounds(0, 4), "")
		comes(t, 4, 150, r)
		testkit.Equal(t, "up", r.tells(t), 2)
		comes(t, 6, 0, r)
		testkit.Equal(t, "down", r.tells(t), 0)
	})
}
