package matching

import (
	"fmt"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// The limits that have been full for the longest have a series, by the shard that knows the longest time, and not more than 20.
func TestFullLimitsAreOnThePage(t *testing.T) {
	var f fullLimits
	shown := func() map[string]float64 {
		all := map[string]float64{}
		f.show(func(of signals.Metric, value float64, values ...string) {
			testkit.Equal(t, "metric", of.Name, signals.LimitFull.Name)
			all[values[0]+" "+values[1]] = value
		})
		return all
	}
	f.set(0, []*yardv1.FullLimit{{Domain: "shop", Ref: "type/pay", FullForMs: 2000}, {Domain: "media", Ref: "type/pay", FullForMs: 500}})
	f.set(1, []*yardv1.FullLimit{{Domain: "shop", Ref: "type/pay", FullForMs: 3000}})
	testkit.Equal(t, "two shards", shown(), map[string]float64{"shop type/pay": 3, "media type/pay": 0.5})
	f.set(1, nil)
	testkit.Equal(t, "after one left", shown(), map[string]float64{"shop type/pay": 2, "media type/pay": 0.5})
	var many []*yardv1.FullLimit
	for n := range 50 {
		many = append(many, &yardv1.FullLimit{Domain: "shop", Ref: fmt.Sprint("type/t", n), FullForMs: int64(10_000 + n)})
	}
	f.set(0, many)
	all := shown()
	if len(all) != fullMost || all["shop type/t49"] == 0 || all["shop type/t29"] != 0 {
		t.Errorf("of many are shown %v", all)
	}
}
