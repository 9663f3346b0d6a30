package gateway

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// quota gives the domain of the rig one.
func (r *rig) quota(q string) {
	r.catalog.kv.Store(catalog.Domains.Key("", "shop"), `{"name":"shop","quota":{`+q+`}}`)
}

// wantOverQuota checks a refusal for the quota of the domain.
func wantOverQuota(t *testing.T, err error) {
	t.Helper()
	if e := faultOf(t, err, fault.ResourceExhausted); e.Detail[fault.DetailReason] != "quota" || e.RetryAfter == 0 {
		t.Errorf("got %v, retry after %v", e, e.RetryAfter)
	}
}

// openPolls is how many the quota counts.
func (r *rig) openPolls() int32 { return r.Quotas.Use(r.Catalog.Domain("shop")).OpenPolls }

// TestARefusedPollSaysWhatWasGivenUp: one that is over the quota, or for which there is no place. The polls that it names may be what takes the room.
func TestARefusedPollSaysWhatWasGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for what, most := range map[string]int{"2 polls that wait": 2, "too many polls wait": poolOfOne} {
			r := newRig(t, small)
			r.quota(`"open_polls":100`)
			if most == 2 {
				r.quota(`"open_polls":2`)
			}
			for range most {
				wantCode(t, (<-r.poll(time.Minute)).err, "")
			}
			testkit.Equal(t, "times matching was notified", len(r.bus.givenUp), 0)
			e := faultOf(t, (<-r.poll(time.Minute)).err, fault.ResourceExhausted)
			if !strings.Contains(e.Message, what) || e.RetryAfter == 0 {
				t.Errorf("%v, want %q", e, what)
			}
			if got := r.bus.givenUp; len(got) != 1 || got[0].Domain != "shop" || !slices.Equal(got[0].Inboxes, []string{"old"}) {
				t.Errorf("%s: matching was notified of %v", what, got)
			}
			testkit.Equal(t, "polls are sent", len(r.bus.sentPolls()), most)
		}
	})
}

// TestOnlyOpenPollsCount: neither those that find no place, nor those that were answered.
func TestOnlyOpenPollsCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, small)
		r.quota(`"open_polls":100`)
		for range poolOfOne + 3 {
			<-r.poll(time.Minute)
		}
		testkit.Equal(t, "polls are open", r.openPolls(), poolOfOne)
		for _, s := range r.bus.sentPolls() {
			r.tellAnswered(t, s.id)
		}
		testkit.Equal(t, "polls are open after all were answered", r.openPolls(), 0)
	})
}
