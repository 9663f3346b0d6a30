package demo

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

// payoutsMax is the limit of the demo: the bank takes no more calls at once from one
// customer, however many workers there are.
const payoutsMax = 3

// Fractions of tasks with which something is wrong.
const (
	regretFollowUp = 0.1  // customers say at once that they do not want to be asked
	brokenUploads  = 0.02 // the upload broke off: what came does not decode
	closedAccounts = 0.02 // the bank refuses the payee for good
)

// tenant is one customer of the engine.
type tenant struct {
	domain      string
	description string
	tasklist    string
	// concurrency of each of its workers.
	concurrency int
	kinds       []kind

	ledger *ledger
	client *yard.Client // of its producer
}

// kind is a task type, when its tasks come, and what a worker does for them.
type kind struct {
	yard.TaskType
	priority int
	// bursts are the sizes of what comes at once, every so often: any of them, by chance.
	every  time.Duration
	bursts []float64
	// scaleMax bounds the scale of the demo for this kind. Default 0: it has no bound.
	scaleMax float64
	// delay is how much later a task is due, at least, and at most twice that.
	delay time.Duration
	// regretted is the fraction of tasks that is cancelled right away.
	regretted float64
	// payload makes the one of a task; it is pure, so a seed repeats them.
	payload  func(r *rand.Rand) any
	register func(w *yard.Worker, taskType string)
}

// makeTenants makes all three: about 160 tasks a second.
func makeTenants(b *bank) []*tenant {
	return []*tenant{
		// Bursts, priorities, delayed tasks and cancels.
		{domain: "shop", tasklist: "emails", description: "An online shop's e-mails", concurrency: 8, kinds: []kind{
			email("email.reset", 1, 400*time.Millisecond, "Your code to set a new password is %06d", 1),
			// At times somebody well known has praised the shop.
			email("email.receipt", 2, time.Second, "Thank you for order A%06d", 20, 20, 20, 20, 120),
			followUp(),
			email("email.newsletter", 5, 8*time.Second, "This week at the shop, no. %d", 400),
		}},
		// Work for the CPU.
		{domain: "media", tasklist: "thumbnails", description: "A photo site that makes thumbnails", concurrency: 2, kinds: []kind{{
			TaskType: yard.TaskType{
				Name: "image.thumbnail", StartToClose: 30 * time.Second, HeartbeatTimeout: 10 * time.Second,
				Retry: &yard.RetryPolicy{MaxAttempts: 3, InitialInterval: 500 * time.Millisecond},
			},
			every: 1500 * time.Millisecond, bursts: []float64{8, 14, 20, 27},
			payload: newUpload, register: handler(resize),
		}}},
		// A cluster-wide limit on a type, which the workers of a tenant could overrun; retries with
		// back-off, idempotency, dead letters. The bank's 80 calls a second do not grow with the demo.
		{domain: "payouts", tasklist: "payouts", description: "Payouts to merchants through a flaky bank", concurrency: 4, kinds: []kind{{
			TaskType: yard.TaskType{
				Name: "payout.send", MaxConcurrency: payoutsMax, StartToClose: 30 * time.Second,
				Retry: &yard.RetryPolicy{MaxAttempts: 12, InitialInterval: 100 * time.Millisecond, Backoff: 2, MaxInterval: 2 * time.Second},
			},
			every: 2 * time.Second, bursts: []float64{80}, scaleMax: 1,
			payload: newPayout, register: handler(b.send),
		}}},
	}
}

// email is a kind of the shop's messages; the subject has a number in it.
func email(name string, priority int, every time.Duration, subject string, bursts ...float64) kind {
	return kind{
		TaskType: yard.TaskType{
			Name: name, StartToClose: 30 * time.Second,
			Retry: &yard.RetryPolicy{MaxAttempts: 5, InitialInterval: 500 * time.Millisecond},
		},
		priority: priority, every: every, bursts: bursts,
		payload: newMessage(subject), register: handler(sendMessage),
	}
}

// followUp asks about half of the orders, some seconds later.
func followUp() kind {
	k := email("email.followup", 3, time.Second, "How was order A%06d?", 10, 10, 10, 10, 60)
	k.delay, k.regretted = 3*time.Second, regretFollowUp
	return k
}

// note says what makes a task of this kind wait.
func (k *kind) note() string {
	switch {
	case k.MaxConcurrency > 0:
		return fmt.Sprintf(" (%d at once)", k.MaxConcurrency)
	case k.priority > 0:
		return fmt.Sprintf(" (priority %d)", k.priority)
	default:
		return ""
	}
}
