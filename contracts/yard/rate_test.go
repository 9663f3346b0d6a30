package yard_test

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

// Rates go both ways whole, and none is none.
func TestRatesGoBothWaysWhole(t *testing.T) {
	rate, wire := yard.Rate{Tasks: 5, Per: 10 * time.Minute, Burst: 2}, &yardv1.Rate{Tasks: 5, PerMs: 600_000, Burst: 2}
	inBubble(t, func(t *testing.T) {
		s := newStack(t)
		types := answering[yardv1.PutTypeRequest](t, s, topology.API("shop", "types.put"),
			&yardv1.PutTypeResponse{Type: &yardv1.TaskType{Name: "a", Rate: wire}}, &yardv1.PutTypeResponse{Type: &yardv1.TaskType{Name: "a"}})
		lists := answering[yardv1.PutTasklistRequest](t, s, topology.API("shop", "tasklists.put"),
			&yardv1.PutTasklistResponse{Tasklist: &yardv1.Tasklist{Name: "a", Rate: wire}}, &yardv1.PutTasklistResponse{Tasklist: &yardv1.Tasklist{Name: "a"}})
		limits := answering[yardv1.PutLimitRequest](t, s, topology.API("shop", "limits.put"),
			&yardv1.PutLimitResponse{Limit: &yardv1.Limit{Name: "a", Rate: wire}}, &yardv1.PutLimitResponse{Limit: &yardv1.Limit{Name: "a"}})
		for i, want := range []yard.Rate{rate, {}} {
			var sent *yardv1.Rate
			if i == 0 {
				sent = wire
			}
			typ, err := s.client.PutType(soon(t), yard.TaskType{Name: "a", Rate: want})
			if err != nil || typ.Rate != want || !proto.Equal(types.requests()[i].Type.Rate, sent) {
				t.Errorf("type: %+v %v, asked %v", typ, err, types.requests())
			}
			list, err := s.client.PutTasklist(soon(t), yard.Tasklist{Name: "a", Rate: want})
			if err != nil || list.Rate != want || !proto.Equal(lists.requests()[i].Tasklist.Rate, sent) {
				t.Errorf("tasklist: %+v %v, asked %v", list, err, lists.requests())
			}
			limit, err := s.client.PutLimit(soon(t), yard.Limit{Name: "a", Rate: want})
			if err != nil || limit.Rate != want || !proto.Equal(limits.requests()[i].Limit.Rate, sent) {
				t.Errorf("limit: %+v %v, asked %v", limit, err, limits.requests())
			}
		}
	})
}
