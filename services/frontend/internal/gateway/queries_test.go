package gateway

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
)

// R3: however much one domain asks for, others and the administration can still ask, and alone
// it has most of the room.
func TestI14_ADomainLeavesRoomForOtherQueries(t *testing.T) {
	for _, most := range []int{1, 2, 3, 16, 1000} {
		q := newQueries(most)
		flood := 0
		for q.enter("flood") {
			flood++
		}
		if flood < most*3/4 || most >= 4 && flood == most {
			t.Errorf("of %d one domain has %d", most, flood)
		}
		if most < 4 {
			continue // there is no quarter to keep free
		}
		for _, domain := range []string{"shop", topology.ReservedDomain} {
			if !q.enter(domain) {
				t.Errorf("of %d there is none for %q", most, domain)
			}
		}
		others := 0
		for q.enter("shop") {
			others++
		}
		if q.enter("flood") || q.total > most {
			t.Errorf("%d of %d are under way", q.total, most)
		}
		for range flood {
			q.leave("flood")
		}
		for range others + 1 {
			q.leave("shop")
		}
		q.leave(topology.ReservedDomain)
		if q.total != 0 || len(q.of) != 0 {
			t.Errorf("left over: %d, %v", q.total, q.of)
		}
	}
}
