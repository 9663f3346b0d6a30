package intake

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/testkit"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/filing"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/tries"

	core "github.com/yardmaster-io/yardmaster/services/frontend/internal/core/intake"
)

// Tasks with order keys are filed under their domain also if their tasklist is split off another lane: a key may have several tasklists.
func TestTasksWithOrderKeysAreFiledUnderTheirDomain(t *testing.T) {
	p := queues{apart: map[ids.Place]bool{"shop.bulk": true}}
	r := filing.Request{Destination: filing.Destination{Lane: ids.LaneKeyed, Domain: "shop", Tasklist: "bulk"}}
	p.setApart(&r)
	if !r.Apart || r.ListApart {
		t.Errorf("it is filed by domain: %v, by tasklist: %v", r.Apart, r.ListApart)
	}
}

// TestCheckedKeysGoApart: who has checked the keys of a member is not refused for keys that no one has checked.
func TestCheckedKeysGoApart(t *testing.T) {
	var parts []*part
	for _, checked := range []bool{false, true, false, true} {
		pt := &part{}
		if checked {
			pt.Checked(core.Checks{Left: 1})
		}
		pt.accepted.Records = []*logv1.Record{{BatchId: "a"}}
		parts = append(parts, pt)
	}
	all := byBatch(parts)
	if len(all) != 2 || len(all[0]) != 2 || all[0][0].KeysChecked() || all[0][1].KeysChecked() || !all[1][0].KeysChecked() {
		t.Errorf("%v", all)
	}
}

// TestATryIsNotStoredLaterThanTheLogTakesIt: the log forgets the message id of a request later.
func TestATryIsNotStoredLaterThanTheLogTakesIt(t *testing.T) {
	testkit.Equal(t, "the age up to which a try may be stored", tries.LastAlive, topology.SubmitLatest)
}
