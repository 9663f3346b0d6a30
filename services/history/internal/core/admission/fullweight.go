package admission

// FullWeight bounds how many tasks of a domain come in with its full weight.
type FullWeight struct {
	// PerSecond is how many in a second; 0 = all.
	PerSecond float64
	// Shadow: the tasks over it are counted only.
	Shadow bool
}

// class is which turns the queues of a domain have.
type class uint8

const (
	fullClass class = iota
	// lowClass is that of the domains that are over their rates.
	lowClass
	classes
)

// budgets are how many tasks of domains may still come in with their full weights, up to a second's worth. They are an owner's own: the log has what
// follows from them.
type budgets struct {
	of func(domain string) FullWeight
	// left is as of the last refill, and has no budget that is full.
	left       map[string]float64
	refilledAt int64
}

// take takes tasks off the budget of a domain. It returns how many of them are over it: all, if there was none left. Tasks that come before that are taken
// off whole, so that a budget is exceeded by one message, and that is paid for later. None: nothing is left now.
func (b *budgets) take(domain string, tasks int) (over int, none bool) {
	rate := b.of(domain)
	if rate.PerSecond <= 0 {
		return 0, false
	}
	left, some := b.left[domain]
	if !some {
		left = rate.PerSecond
	}
	if left > 0 {
		left -= float64(tasks)
		b.left[domain] = left
	} else {
		over = tasks
	}
	return over, left <= 0 && !rate.Shadow
}

// Refill adds to the budgets what the rates give for the time that has passed.
func (b *budgets) Refill(nowMS int64) {
	passed := max(0, nowMS-b.refilledAt)
	b.refilledAt = nowMS
	for domain, left := range b.left {
		rate := b.of(domain).PerSecond
		left += rate * float64(passed) / 1000
		if b.left[domain] = left; rate <= 0 || left >= rate {
			delete(b.left, domain)
		}
	}
}

// full tells whether the budget of a domain is as large as after a rest, or bounds nothing.
func (b *budgets) full(domain string) bool {
	_, some := b.left[domain]
	return !some || b.of(domain).Shadow
}

// class is the one of a domain.
func (b *budgets) class(domain string) class {
	if b.full(domain) || b.left[domain] > 0 {
		return fullClass
	}
	return lowClass
}
