package taskstate

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// under is a task that runs under the test's policy with a change.
func under(change func(*Policy)) *Task {
	t := fresh()
	change(t.Policy)
	grab(t, t0)
	return t
}

func failWith(t *Task, errType string, delayMS int64) (Verdict, Effects) {
	return Apply(t, &Event{Kind: Failed, ID: t.ID, Fence: t.Token(), Message: "no", ErrType: errType, DelayMS: delayMS}, t0+1)
}

// rules are those of some error types.
func rules(p *Policy) {
	p.Rules = &Rules{NonRetryable: []string{"stolen", "closed"}, ByError: []ErrorRule{
		{ErrType: "busy", MaxAttempts: 7},
		{ErrType: "once", MaxAttempts: 1},
		{ErrType: "slow", InitialIntervalMS: 2000},
		{ErrType: "steep", Backoff: 2},
		{ErrType: "capped", MaxIntervalMS: 500},
		{ErrType: "slowest", InitialIntervalMS: 120_000},
		{ErrType: "nothing"},
	}}
}

// TestAPolicyTellsErrorTypesApart: three failures are the end by the policy, and some types have their own numbers.
func TestAPolicyTellsErrorTypesApart(t *testing.T) {
	for _, c := range []struct {
		errType  string
		before   int32 // failures
		delayMS  int64
		want     State
		reason   string
		low      int64
		high     int64
		failures int32
	}{
		{"other", 0, 0, Backoff, "", 900, 1100, 1},
		{"other", 2, 0, Dead, "no", 0, 0, 3},
		{"stolen", 0, 0, Dead, byNonRetryable, 0, 0, 1},
		{"closed", 1, 5000, Dead, byNonRetryable, 0, 0, 2}, // whatever delay the worker asks for
		{"Stolen", 0, 0, Backoff, "", 900, 1100, 1},
		{"", 0, 0, Backoff, "", 900, 1100, 1},
		{"busy", 2, 0, Waiting, "", 14_400, 17_600, 3},
		{"busy", 5, 0, Waiting, "", 49_000, 60_000, 6},
		{"busy", 6, 0, Dead, byErrorRule, 0, 0, 7},
		{"busy", 8, 0, Dead, byErrorRule, 0, 0, 9},
		{"once", 0, 5000, Dead, byErrorRule, 0, 0, 1},
		{"slow", 0, 0, Backoff, "", 1800, 2200, 1},
		{"slowest", 0, 0, Waiting, "", 109_000, 120_000, 1},
		{"slow", 1, 0, Backoff, "", 7200, 8800, 2},
		{"slow", 1, 7, Backoff, "", 7, 7, 2},
		{"slow", 2, 0, Dead, "no", 0, 0, 3},
		{"steep", 1, 0, Backoff, "", 1800, 2200, 2},
		{"capped", 1, 0, Backoff, "", 450, 550, 2},
		{"nothing", 1, 0, Backoff, "", 3600, 4400, 2},
	} {
		task := under(rules)
		task.Failures = c.before
		_, fx := failWith(task, c.errType, c.delayMS)
		if task.State != c.want || task.Failures != c.failures || task.ErrType != c.errType || task.ErrMessage != "no" || fx.Finish != (c.want == Dead) {
			t.Errorf("%q after %d failures: %s, %d failures, %q/%q, %+v", c.errType, c.before, task.State, task.Failures, task.ErrType, task.ErrMessage, fx)
			continue
		}
		last := task.Steps[len(task.Steps)-1]
		if c.want == Dead {
			if last.Kind != StepDead || last.Message != c.reason || last.ErrType != c.errType {
				t.Errorf("%q after %d failures: its history ends with %+v", c.errType, c.before, last)
			}
		} else if wait := task.DueAt - t0 - 1; wait < c.low || wait > c.high {
			t.Errorf("%q after %d failures: waits %d ms", c.errType, c.before, wait)
		}
	}
}

// TestWhatFollowsALostAttempt and one that took too long, by the policy; a cancel and the task's end come before.
func TestWhatFollowsALostAttempt(t *testing.T) {
	const silent, late = 2_000, 10_000
	expired := func(undelivered bool) Event { return Event{Kind: Expired, Undelivered: undelivered} }
	for name, c := range map[string]struct {
		policy   Policy
		ev       Event
		at       int64
		cancel   bool
		finishBy int64
		want     State
		failures int32
		lost     int16
		errType  string
		reason   string
	}{
		"lost":                               {Policy{}, expired(false), silent, false, 0, Ready, 0, 1, "", ""},
		"lost, retries":                      {Policy{OnLost: LostRetries}, expired(false), silent, false, 0, Ready, 0, 1, "", ""},
		"lost, fails":                        {Policy{OnLost: LostFails}, expired(false), silent, false, 0, Backoff, 1, 0, "lost", ""},
		"lost, fails the last time":          {Policy{OnLost: LostFails, MaxAttempts: 1}, expired(false), silent, false, 0, Dead, 1, 0, "lost", "its worker fell silent"},
		"lost, dies":                         {Policy{OnLost: LostDies}, expired(false), silent, false, 0, Dead, 1, 0, "lost", byOnLost},
		"lost, dies though it is cancelled":  {Policy{OnLost: LostDies}, expired(false), silent, true, 0, Cancelled, 1, 0, "lost", ""},
		"lost, fails though it is cancelled": {Policy{OnLost: LostFails}, expired(false), silent, true, 0, Cancelled, 1, 0, "lost", ""},
		"lost, fails without time left":      {Policy{OnLost: LostFails}, expired(false), silent, false, silent + 500, Lapsed, 1, 0, "lost", "it was not completed in time"},
		"lost, dies without time left":       {Policy{OnLost: LostDies}, expired(false), silent, false, silent + 500, Dead, 1, 0, "lost", byOnLost},
		"lost, dies when its time is over":   {Policy{OnLost: LostDies}, Event{Kind: Expired, NotAfter: math.MaxInt64}, silent + 9, false, silent + 5, Lapsed, 1, 0, "lost", "it was not completed in time"},
		"not received":                       {Policy{OnLost: LostRetries}, expired(true), silent, false, 0, Ready, 0, 0, "", ""},
		"not received, fails":                {Policy{OnLost: LostFails, OnTimeout: TimeoutDies}, expired(true), silent, false, 0, Ready, 0, 0, "", ""},
		"maybe not received, dies":           {Policy{OnLost: LostDies}, expired(true), silent, false, 0, Dead, 1, 0, "lost", byOnLost},
		"too long":                           {Policy{OnLost: LostDies}, expired(false), late, false, 0, Backoff, 1, 0, "timeout", ""},
		"too long, fails":                    {Policy{OnTimeout: TimeoutFails}, expired(false), late, false, 0, Backoff, 1, 0, "timeout", ""},
		"too long, dies":                     {Policy{OnTimeout: TimeoutDies}, expired(false), late, false, 0, Dead, 1, 0, "timeout", byOnTimeout},
		"too long, dies, cancelled":          {Policy{OnTimeout: TimeoutDies}, expired(false), late, true, 0, Cancelled, 1, 0, "timeout", ""},
		"too long, not received":             {Policy{OnLost: LostDies}, expired(true), late, false, 0, Ready, 0, 0, "", ""},
		"too long, maybe not received, dies": {Policy{OnTimeout: TimeoutDies}, expired(true), late, false, 0, Dead, 1, 0, "timeout", byOnTimeout},
		"as long as the task has":            {Policy{OnTimeout: TimeoutDies}, expired(false), late, false, late - 1, Lapsed, 1, 0, "timeout", "it was not completed in time"},
		"silent before it is too long":       {Policy{OnLost: LostDies, OnTimeout: TimeoutFails}, Event{Kind: Expired, NotAfter: math.MaxInt64}, late, false, 0, Dead, 1, 0, "lost", byOnLost},
		"handed back":                        {Policy{OnLost: LostDies, OnTimeout: TimeoutDies, MaxDeliveries: 1}, Event{Kind: Released}, silent, false, 0, Ready, 0, 0, "", ""},
	} {
		task := fresh()
		p := policy()
		p.OnLost, p.OnTimeout, p.MaxDeliveries = c.policy.OnLost, c.policy.OnTimeout, c.policy.MaxDeliveries
		if c.policy.MaxAttempts > 0 {
			p.MaxAttempts = c.policy.MaxAttempts
		}
		task.Policy = p
		if c.finishBy > 0 {
			task.Extra = &Extra{Expiry: Expiry{FinishBy: t0 + c.finishBy}}
		}
		grab(task, t0)
		if c.at == late && c.ev.NotAfter == 0 {
			send(task, Heartbeat, t0+late-2)
		}
		if c.cancel {
			send(task, Cancel, t0)
		}
		c.ev.ID, c.ev.Fence = task.ID, task.Token()
		v, fx := Apply(task, &c.ev, t0+c.at)
		if v.Code != "" || task.State != c.want || task.Failures != c.failures || task.Lost != c.lost || task.ErrType != c.errType || fx.Finish != task.State.Finished() {
			t.Errorf("%s: %s, %d failures, %d lost, %q, %+v %+v", name, task.State, task.Failures, task.Lost, task.ErrType, v, fx)
		}
		if last := task.Steps[len(task.Steps)-1]; c.reason != "" && last.Message != c.reason {
			t.Errorf("%s: its history ends with %+v", name, last)
		}
	}
}

// TestDeliveriesAreLimited, however attempts end, but for those that were handed back.
func TestDeliveriesAreLimited(t *testing.T) {
	const most = 4
	for name, c := range map[string]struct {
		end    func(task *Task, now int64) (Verdict, Effects)
		grants int
		want   State
		reason string
	}{
		"lost":      {func(task *Task, now int64) (Verdict, Effects) { return send(task, Expired, now) }, most, Dead, maxDeliveriesType},
		"failed":    {func(task *Task, now int64) (Verdict, Effects) { return send(task, Failed, now) }, most, Dead, maxDeliveriesType},
		"too long":  {func(task *Task, now int64) (Verdict, Effects) { return send(task, Expired, now+8_000) }, most, Dead, maxDeliveriesType},
		"completed": {func(task *Task, now int64) (Verdict, Effects) { return send(task, Succeeded, now) }, 1, Completed, ""},
		"handed back": {func(task *Task, now int64) (Verdict, Effects) {
			return send(task, Released, now)
		}, 50, Ready, ""},
		"not received": {func(task *Task, now int64) (Verdict, Effects) {
			return Apply(task, &Event{Kind: Expired, ID: task.ID, Fence: task.Token(), Undelivered: true}, now)
		}, 50, Ready, ""},
		"handed back every other time": {func(task *Task, now int64) (Verdict, Effects) {
			if task.Version%2 == 1 {
				return send(task, Released, now)
			}
			return send(task, Expired, now)
		}, 2 * most, Dead, maxDeliveriesType},
	} {
		task := fresh()
		task.Policy.MaxAttempts, task.Policy.MaxDeliveries, task.Policy.MaxIntervalMS = 100, most, 10
		now, grants := t0, 0
		for ; grants < 50 && !task.State.Finished(); grants++ {
			if v := grab(task, now); !v.Granted {
				t.Fatalf("%s: grant %d: %+v", name, grants, v)
			}
			now += 2_000
			if v, _ := c.end(task, now); v.Code != "" {
				t.Fatalf("%s: grant %d: %+v", name, grants, v)
			}
			now += 10_000
		}
		if grants != c.grants || task.State != c.want || task.ErrType != c.reason && c.want == Dead {
			t.Errorf("%s: %s of %q after %d grants", name, task.State, task.ErrType, grants)
		}
		if last := task.Steps[len(task.Steps)-1]; c.want == Dead && (last.Kind != StepDead || last.ErrType != maxDeliveriesType || last.Message != byDeliveries || task.ErrMessage != byDeliveries) {
			t.Errorf("%s: its history ends with %+v", name, last)
		}
	}
}

// TestOtherEndsComeBeforeDeliveries: a cancel, the last failure, a row of lost grants, and the task's time.
func TestOtherEndsComeBeforeDeliveries(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Task)
		kind   Kind
		want   State
		why    string
	}{
		"a cancel, failed":     {func(t *Task) { t.CancelRequested = true }, Failed, Cancelled, "x"},
		"a cancel, lost":       {func(t *Task) { t.CancelRequested = true }, Expired, Cancelled, ""},
		"the last failure":     {func(t *Task) { t.Policy.MaxAttempts = 1 }, Failed, Dead, "x"},
		"a row of lost grants": {func(t *Task) { t.Lost = LostMax - 1 }, Expired, Dead, "lost"},
		"no time is left":      {func(t *Task) { t.Extra = &Extra{Expiry: Expiry{FinishBy: t0 + 1}} }, Failed, Lapsed, "x"},
	} {
		task := under(func(p *Policy) { p.MaxDeliveries = 1 })
		c.change(task)
		Apply(task, &Event{Kind: c.kind, ID: task.ID, Fence: task.Token(), Message: "m", ErrType: "x"}, t0+2_000)
		if task.State != c.want || task.ErrType != c.why {
			t.Errorf("%s: %s of %q", name, task.State, task.ErrType)
		}
	}
	// Its type may limit deliveries later, so what was handed back is counted without a limit, too.
	task := in(Running)
	if send(task, Released, t0); task.HandedBack != 1 {
		t.Errorf("%d were handed back", task.HandedBack)
	}
}

// waits are those of many tasks after their first failure.
func waits(j Jitter) (all []int64) {
	for n := range uint64(20_000) {
		task := numbered(n)
		task.Policy.Jitter = j
		all = append(all, wait(task, t0))
	}
	return all
}

// TestJitterIsSpreadEvenly over its range, also between tasks whose ids follow each other.
func TestJitterIsSpreadEvenly(t *testing.T) {
	for j, bounds := range map[Jitter][2]int64{0: {900, 1100}, JitterSlight: {900, 1100}, JitterFull: {1, 1000}, JitterEqual: {500, 1000}, JitterNone: {1000, 1000}} {
		all := waits(j)
		low, high := slices.Min(all), slices.Max(all)
		if spread := (bounds[1] - bounds[0]) / 50; low < bounds[0] || low > bounds[0]+spread || high > bounds[1] || high < bounds[1]-spread {
			t.Errorf("jitter %d: %d to %d ms, want %v", j, low, high, bounds)
		}
		if j == JitterNone {
			continue
		}
		var tenths [10]int
		for _, w := range all {
			tenths[min(9, (w-bounds[0])*10/(bounds[1]-bounds[0]))]++
		}
		for i, n := range tenths {
			if n < 1800 || n > 2200 {
				t.Errorf("jitter %d: %d of 20000 are in tenth %d", j, n, i)
			}
		}
	}
}

// TestI3_JitterIsTheSameForEveryOwner: owners of two builds apply one log, so the waits are part of its meaning. They differ from failure to failure.
func TestI3_JitterIsTheSameForEveryOwner(t *testing.T) {
	for j, want := range map[Jitter][]int64{JitterFull: {991, 3340, 4080}, JitterEqual: {995, 3670, 10040}, JitterNone: {1000, 4000, 16000}} {
		task := numbered(42)
		task.Policy.MaxAttempts, task.Policy.Jitter = 9, j
		var got []int64
		now := t0
		for range 3 {
			got = append(got, wait(task, now))
			now = task.DueAt
		}
		if !slices.Equal(got, want) {
			t.Errorf("jitter %d: waits of %v ms, want %v", j, got, want)
		}
	}
	task := numbered(42)
	if task.Failures = 1; task.unit() != float64(8930509739315063)/(1<<53) {
		t.Errorf("the number behind the waits is %b", task.unit())
	}
}

func TestFootprintCountsRules(t *testing.T) {
	task := fresh()
	before := task.Footprint()
	rules(task.Policy)
	if got, want := task.Footprint()-before, 2*16+len("stolenclosed")+7*48+len("busyonceslowsteepcappedslowestnothing"); got != want {
		t.Errorf("%d bytes more, want %d", got, want)
	}
}

func TestHowAnAttemptExpired(t *testing.T) {
	for want, end := range map[StepKind]func(*Task){
		StepTimedOut: func(task *Task) { send(task, Heartbeat, t0+9_000); send(task, Expired, t0+10_000) },
		StepLost:     func(task *Task) { task.Policy.OnLost = LostDies; send(task, Expired, t0+2_000) },
		StepHandedBack: func(task *Task) {
			Apply(task, &Event{Kind: Expired, ID: task.ID, Fence: task.Token(), Undelivered: true}, t0+2_000)
		},
		0: func(task *Task) { send(task, Failed, t0) },
	} {
		task := in(Running)
		if end(task); task.HowExpired() != want {
			t.Errorf("%d, want %d", task.HowExpired(), want)
		}
	}
}

// oracle is what README and API say of an attempt that ends, written down once more. It knows nothing of cancels and time limits.
type oracle struct {
	policy                   Policy
	grants, returned, failed int
	lostInARow               int
	dead                     bool
	errType                  string
}

func (o *oracle) ends(how Kind, errType string, final, undelivered, late bool) {
	o.grants++
	p := o.policy
	fails := func(errType string, final bool) {
		o.failed++
		o.lostInARow = 0
		most := int(p.MaxAttempts)
		for _, r := range p.Rules.ByError {
			if r.ErrType == errType && r.MaxAttempts > 0 {
				most = int(r.MaxAttempts)
			}
		}
		o.errType = errType
		o.dead = final || slices.Contains(p.Rules.NonRetryable, errType) || o.failed >= most
	}
	switch {
	case how == Released, undelivered && !(late && p.OnTimeout == TimeoutDies) && !(!late && p.OnLost == LostDies):
		o.returned++
		return
	case how == Failed:
		fails(errType, final)
	case late:
		fails("timeout", p.OnTimeout == TimeoutDies)
	case p.OnLost == LostFails, p.OnLost == LostDies:
		fails("lost", p.OnLost == LostDies)
	default:
		if o.lostInARow++; o.lostInARow == LostMax {
			o.dead, o.errType = true, "lost"
		}
	}
	if !o.dead && p.MaxDeliveries > 0 && o.grants-o.returned >= int(p.MaxDeliveries) {
		o.dead, o.errType = true, "max_deliveries"
	}
}

// TestPoliciesAsTheyAreDocumented drives tasks with random policies against the oracle: they agree after each attempt, and no
// policy lets a task fail or start more often than it says.
func TestPoliciesAsTheyAreDocumented(t *testing.T) {
	types := []string{"a", "b", "c", "timeout", "lost", ""}
	rapid.Check(t, func(t *rapid.T) {
		number := func(name string, most int32) int32 { return rapid.Int32Range(0, most).Draw(t, name) }
		p := policy()
		p.MaxAttempts = 1 + number("attempts", 6)
		p.MaxDeliveries = number("deliveries", 8)
		p.Jitter, p.OnLost, p.OnTimeout = Jitter(number("jitter", 4)), OnLost(number("lost", 3)), OnTimeout(number("timeout", 2))
		p.Rules = &Rules{NonRetryable: types[:number("never", 2)]}
		for i := range number("rules", 4) {
			p.Rules.ByError = append(p.Rules.ByError, ErrorRule{ErrType: types[1+i], MaxAttempts: number("its attempts", 8), InitialIntervalMS: int64(number("its wait", 900))})
		}
		task := fresh()
		task.Policy = p
		o := oracle{policy: *p}
		now := t0
		for !o.dead && o.grants < 60 {
			now = max(now, task.DueAt)
			if task.State == Waiting {
				Load(task, now)
			}
			if v := grab(task, now); !v.Granted {
				t.Fatalf("grant %d at +%d: %+v", o.grants+1, now-t0, v)
			}
			ev := Event{Kind: rapid.SampledFrom([]Kind{Failed, Expired, Expired, Released}).Draw(t, "end"), ID: task.ID, Fence: task.Token()}
			late := false
			switch ev.Kind {
			case Failed:
				ev.ErrType, ev.NonRetryable = rapid.SampledFrom(types).Draw(t, "type"), number("final", 9) == 0
			case Expired:
				ev.Undelivered = rapid.Bool().Draw(t, "undelivered")
				if late = rapid.Bool().Draw(t, "late"); late {
					send(task, Heartbeat, now+p.StartToCloseMS-1)
					now += p.StartToCloseMS
				} else {
					now += p.HeartbeatTimeoutMS
				}
			}
			if v, _ := Apply(task, &ev, now); v.Code != "" {
				t.Fatalf("%+v: %+v", ev, v)
			}
			o.ends(ev.Kind, ev.ErrType, ev.NonRetryable, ev.Undelivered, late)
			if (task.State == Dead) != o.dead || task.ErrType != o.errType || int(task.Failures) != o.failed || int(task.Version) != o.grants {
				t.Fatalf("after %+v: %s of %q, %d failures in %d grants; it is %+v", ev, task.State, task.ErrType, task.Failures, task.Version, o)
			}
			if task.State == Backoff && (task.DueAt <= now || task.DueAt > now+p.MaxIntervalMS) {
				t.Fatalf("the wait is %d ms", task.DueAt-now)
			}
		}
	})
}
