package demo

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// report is the outcome of a demo; its JSON form is for programs.
type report struct {
	OK      bool           `json:"ok"`
	Checks  []check        `json:"checks"`
	Seed    uint64         `json:"seed"`
	Seconds float64        `json:"seconds"`
	Tenants []tenantReport `json:"tenants"`
	Waits   []waitReport   `json:"waits"`
	Limit   limitReport    `json:"limit"`
	Bank    bankStats      `json:"bank"`
}

// check is one claim and whether it holds.
type check struct {
	Claim string `json:"claim"`
	OK    bool   `json:"ok"`
	// Detail is what was counted.
	Detail string `json:"detail"`
}

// tenantReport counts tasks, but where it says otherwise.
type tenantReport struct {
	Name      string `json:"name"`
	Accepted  int    `json:"accepted"`
	Completed int    `json:"completed"`
	Dead      int    `json:"dead"`
	Cancelled int    `json:"cancelled"`
	// Unfinished are those that the engine knows, or did not answer for.
	Unfinished int `json:"unfinished"`
	// Lost are those of which the engine knows nothing.
	Lost int `json:"lost"`
	// Twice finished more than once, ran in two places at once, or shares its id.
	Twice int `json:"twice"`
	// Disagreed are those whose end is not what their handlers saw.
	Disagreed int `json:"disagreed"`
	// Attempts that failed, and those after a failure.
	Failed  int `json:"failed_attempts"`
	Retried int `json:"retried_attempts"`
	// Submits that were refused, and those whose result is not known.
	Refused int `json:"refused"`
	Unsure  int `json:"unsure"`
	// Leftovers are tasks of an earlier run on the same data that ran now.
	Leftovers int `json:"leftovers"`
	// Example is the id of a dead task, or else of a completed one.
	Example string `json:"example,omitempty"`
}

func (t tenantReport) finished() int { return t.Completed + t.Dead + t.Cancelled }

type limitReport struct {
	Type       string `json:"type"`
	Limit      int    `json:"limit"`
	AtOnceMax  int    `json:"handlers_at_once_max"`
	InBankMax  int    `json:"bank_calls_at_once_max"`
	UnpaidDone int    `json:"completed_but_unpaid"`
}

// compare compares what the engine says of the tenant's tasks with what the tenant
// saw itself.
func (t *tenant) compare() tenantReport {
	c := t.ledger.snapshot()
	r := tenantReport{
		Name: t.domain, Accepted: c.accepted, Failed: c.failed, Retried: c.retried,
		Refused: c.refused, Unsure: c.unsure, Twice: c.overlaps + c.twice,
	}
	for _, e := range t.ledger.ordered {
		if e.end.ends > 1 || e.successes > 1 {
			r.Twice++
		}
		switch e.end.state {
		case yardv1.TaskState_TASK_STATE_COMPLETED:
			r.Completed++
			if e.successes == 0 {
				r.Disagreed++
			}
			r.Example = cmp.Or(r.Example, e.id)
		case yardv1.TaskState_TASK_STATE_DEAD:
			if r.Dead++; r.Dead == 1 {
				r.Example = e.id
			}
			if e.successes > 0 {
				r.Disagreed++
			}
		case yardv1.TaskState_TASK_STATE_CANCELLED:
			r.Cancelled++
		default:
			if e.end.lost {
				r.Lost++
			} else {
				r.Unfinished++
			}
		}
	}
	unexplained := 0
	for _, e := range t.ledger.tasks {
		switch {
		case e.kind != nil:
		case e.createdAt.Before(t.ledger.began.Truncate(time.Millisecond)): // its time has no more digits
			r.Leftovers++
		default:
			unexplained++
		}
	}
	// A submit of unknown result may have been accepted; nothing else may run.
	r.Disagreed += max(unexplained-c.unsure, 0)
	return r
}

// makeReport makes the report, after all programs have stopped.
func (p *play) makeReport() report {
	r := report{Seed: p.opts.Seed, Seconds: time.Since(p.began).Seconds(), Bank: p.bank.snapshot()}
	for _, t := range p.tenants {
		r.Tenants = append(r.Tenants, t.compare())
		for _, k := range t.kinds {
			if k.MaxConcurrency > 0 {
				r.Limit = limitReport{
					Type: k.Name, Limit: k.MaxConcurrency, AtOnceMax: t.ledger.snapshot().most,
					InBankMax: r.Bank.InFlightMax, UnpaidDone: t.unpaid(p.bank),
				}
			}
			if waits := t.ledger.wait(k.Name); waits.Tasks > 0 {
				r.Waits = append(r.Waits, waits)
			}
		}
	}
	r.check()
	return r
}

// unpaid is how many completed payouts the bank knows nothing of.
func (t *tenant) unpaid(b *bank) int {
	n := 0
	for _, e := range t.ledger.ordered {
		if e.end.state == yardv1.TaskState_TASK_STATE_COMPLETED && !b.hasPaid(e.id) {
			n++
		}
	}
	return n
}

// total sums the tenants up.
func (r *report) total() tenantReport {
	sum := tenantReport{Name: "all"}
	for _, t := range r.Tenants {
		sum.Accepted += t.Accepted
		sum.Completed += t.Completed
		sum.Dead += t.Dead
		sum.Cancelled += t.Cancelled
		sum.Unfinished += t.Unfinished
		sum.Lost += t.Lost
		sum.Twice += t.Twice
		sum.Disagreed += t.Disagreed
		sum.Failed += t.Failed
		sum.Retried += t.Retried
		sum.Refused += t.Refused
		sum.Unsure += t.Unsure
		sum.Leftovers += t.Leftovers
	}
	return sum
}

// check checks the claims. A demo in which nothing happened proves nothing.
func (r *report) check() {
	all := r.total()
	var idle []string
	for _, t := range r.Tenants {
		if t.Accepted == 0 {
			idle = append(idle, t.Name)
		}
	}
	claim := func(ok bool, what, format string, args ...any) {
		r.Checks = append(r.Checks, check{Claim: what, OK: ok, Detail: fmt.Sprintf(format, args...)})
	}
	claim(len(idle) == 0, "every tenant had work", "%s tasks accepted%s", whole(all.Accepted), idleNote(idle))
	claim(all.Accepted == all.finished(), "every accepted task has finished",
		"%s accepted, %s finished", whole(all.Accepted), whole(all.finished()))
	claim(all.Twice == 0, "none finished twice or ran in two places at once", "%d did", all.Twice)
	claim(all.Disagreed == 0, "how it ended is what its handler saw", "%d differ", all.Disagreed)
	claim(r.Limit.AtOnceMax <= r.Limit.Limit && r.Limit.InBankMax <= r.Limit.Limit,
		fmt.Sprintf("%s never ran more than %d at once on all workers", r.Limit.Type, r.Limit.Limit),
		"%d at most, %d as seen by the bank", r.Limit.AtOnceMax, r.Limit.InBankMax)
	claim(r.Bank.PaidTwice == 0 && r.Bank.Overlaps == 0 && r.Limit.UnpaidDone == 0, "every completed payout was paid, and paid once",
		"%s paid, %d twice, %d not; %s repeats recognised", whole(r.Bank.Paid), r.Bank.PaidTwice, r.Limit.UnpaidDone, whole(r.Bank.Repeats))
	r.OK = true
	for _, c := range r.Checks {
		r.OK = r.OK && c.OK
	}
}

func idleNote(idle []string) string {
	if len(idle) == 0 {
		return ""
	}
	return ", none from " + strings.Join(idle, ", ")
}
