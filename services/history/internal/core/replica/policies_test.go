package replica

import "github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"

// storyPolicies are storyPolicy, and others that tell apart how attempts end.
var storyPolicies = []*taskstate.Policy{
	storyPolicy, storyPolicy,
	policyWith(func(p *taskstate.Policy) { p.MaxDeliveries, p.Jitter = 2, taskstate.JitterFull }),
	policyWith(func(p *taskstate.Policy) { p.OnLost, p.OnTimeout = taskstate.LostFails, taskstate.TimeoutDies }),
	policyWith(func(p *taskstate.Policy) {
		p.OnLost, p.Jitter = taskstate.LostDies, taskstate.JitterEqual
		p.Rules = &taskstate.Rules{NonRetryable: []string{"final"}, ByError: []taskstate.ErrorRule{{ErrType: "slow", InitialIntervalMS: 30_000, MaxAttempts: 2}}}
	}),
}

func policyWith(change func(*taskstate.Policy)) *taskstate.Policy {
	p := *storyPolicy
	change(&p)
	return &p
}
