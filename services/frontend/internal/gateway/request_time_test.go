package gateway

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/testkit"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/tries"
)

func TestTheTimeOfARequestIsChecked(t *testing.T) {
	onKnowing(t, func(t *testing.T, r *rig) {
		for off, code := range map[time.Duration]fault.Code{
			tries.AheadMax + time.Millisecond: fault.InvalidTime, time.Hour: fault.InvalidTime,
			-tries.RepeatMax - time.Millisecond: fault.FailedPrecondition, -30 * 24 * time.Hour: fault.FailedPrecondition,
		} {
			req := tasks(1)
			req.RequestId = ids.NewRequestID(time.Now().Add(off)).String()
			e := faultOf(t, (<-r.submit(t, req)).err, code)
			if want := strconv.FormatInt(time.Now().UnixMilli(), 10); e.Path != "/request_id" || e.Detail[fault.DetailNowMs] != want {
				t.Errorf("%v: path %q, detail %v, want %s", off, e.Path, e.Detail, want)
			}
		}
		for _, off := range []time.Duration{tries.AheadMax, -tries.FreshFor, tries.SkewReported, -tries.SkewReported} {
			req := tasks(1)
			req.RequestId, req.Tries = ids.NewRequestID(time.Now().Add(off)).String(), 1
			o := <-r.submit(t, req)
			accepted(t, o)
			if told := o.resp.(*yardv1.SubmitResponse).NowMs != 0; told != (off.Abs() > tries.SkewReported) {
				t.Errorf("%v off: reported %v", off, told)
			}
		}
		// Of a clock that is far behind, first tries go alone.
		for _, off := range []time.Duration{-tries.FreshFor - time.Second, -tries.AliveFor, -time.Minute} {
			req := tasks(1)
			req.RequestId, req.Tries = ids.NewRequestID(time.Now().Add(off)).String(), 1
			accepted(t, <-r.submit(t, req))
		}
		testkit.Equal(t, "messages", r.log.messages(), 7)
	})
}

// A try whose append has an unknown outcome may still be stored when the minute is over: it does not hear that it was
// too old, or it would be submitted again.
func TestI1_ATryThatMayBeUnderWayIsNotTooOld(t *testing.T) {
	onKnowing(t, func(t *testing.T, r *rig) {
		sent := 0
		r.log.fault = func(p int, m natslog.Msg) (bool, error) {
			if sent++; sent == 1 {
				time.AfterFunc(8*time.Second, func() {
					r.log.mu.Lock()
					defer r.log.mu.Unlock()
					r.log.store(p, m)
				})
			}
			time.Sleep(time.Second)
			return false, natslog.ErrOutcomeUnknown
		}
		req := tasks(1)
		req.RequestId, req.Tries = ids.NewRequestID(time.Now().Add(5*time.Second-tries.AppendUntil)).String(), 1
		o := <-r.submitBy(t, req, DeadlineMax, 0)
		time.Sleep(time.Minute)
		if fault.CodeOf(o.err) == fault.FailedPrecondition {
			t.Error("refused for good, and stored:", o.err)
		}
		if o.err == nil {
			wantOnce(t, r.log, accepted(t, o))
		}
	})
}

// The server's clock in a refusal says that nothing was stored. A repeat learns it only if that is certain: not of what
// may have been stored long ago, nor where another frontend's clock, which may be ahead of ours, may have let the first try in.
func TestI2_ARepeatLearnsTheTimeOnlyIfNothingIsStored(t *testing.T) {
	onKnowing(t, func(t *testing.T, r *rig) {
		for off, told := range map[time.Duration]bool{
			tries.AheadMax + time.Millisecond: false, tries.AheadMax + tries.ClocksApart: false, tries.AheadMax + tries.ClocksApart + time.Millisecond: true,
			-tries.RepeatMax - time.Millisecond: false, -24 * time.Hour: false,
		} {
			req := tasks(1)
			req.RequestId, req.Tries = ids.NewRequestID(time.Now().Add(off)).String(), 2
			e := fault.From((<-r.submit(t, req)).err)
			if e.Path != "/request_id" || (e.Detail[fault.DetailNowMs] != "") != told {
				t.Errorf("%v: %v, detail %v", off, e, e.Detail)
			}
		}
		testkit.Equal(t, "messages", r.log.messages(), 0)
	})
}

// After a minute a request is looked for, and not stored any more. What no one finds then was never stored, nor will be.
// The answer tells the server's clock: the client's own may be behind, and the answer to its first try lost.
func TestAnOldRequestIsNotStored(t *testing.T) {
	onKnowing(t, func(t *testing.T, r *rig) {
		for _, after := range []time.Duration{tries.AppendUntil + time.Second, tries.RepeatMax - time.Second} {
			for _, try := range []int32{0, 2} {
				req := withID(tasks(1), false)
				req.Tries = try
				began := time.Now()
				time.Sleep(after)
				e := faultOf(t, (<-r.submitBy(t, req, DeadlineMax, 0)).err, fault.FailedPrecondition)
				want := strconv.FormatInt(time.Now().UnixMilli(), 10)
				if e.Path != "/request_id" || e.Detail[fault.DetailNowMs] != want || time.Since(began) < tries.LastAlive {
					t.Errorf("try %d, after %v: %v, %v", try, time.Since(began), e, e.Detail)
				}
			}
		}
		testkit.Equal(t, "messages", r.log.messages(), 0)
	})
}

// A first try that is too old is of a clock that is behind: the answer tells the server's, or each new id would be too old.
func TestAFirstTryOfAClockThatIsFarBehindLearnsTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, knowing(func() *memLog { return nil })).running(t) // no owner is asked for it: that may take long
		for _, behind := range []time.Duration{tries.AppendUntil + time.Millisecond, tries.LastAlive, tries.RepeatMax} {
			req := tasks(1)
			req.RequestId, req.Tries = ids.NewRequestID(time.Now().Add(-behind)).String(), 1
			began := time.Now()
			e := faultOf(t, (<-r.submit(t, req)).err, fault.FailedPrecondition)
			if want := strconv.FormatInt(began.UnixMilli(), 10); e.Path != "/request_id" || e.Detail[fault.DetailNowMs] != want || time.Now() != began {
				t.Errorf("%v behind: path %q, detail %v, want %s, after %v", behind, e.Path, e.Detail, want, time.Since(began))
			}
		}
		testkit.Equal(t, "messages", r.log.messages(), 0)
	})
}
