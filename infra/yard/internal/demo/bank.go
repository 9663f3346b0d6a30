package demo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
)

// How bad the bank is. The fractions are of calls, and exclude each other.
const (
	bankBusy     = 0.10 // refuses at once
	bankHangs    = 0.05 // works for long, then drops the call unpaid
	bankForgets  = 0.05 // pays, then drops the call, so that the caller cannot know
	bankHangsFor = 150 * time.Millisecond
	bankTakesMin = 15 * time.Millisecond
	bankTakesMax = 45 * time.Millisecond
)

// closedPrefix begins the account numbers that the bank refuses for good.
const closedPrefix = "CLOSED"

// payout is the payload of a payout.
type payout struct {
	// Reference is the payer's own number of the payout: the same one paid twice
	// is money lost.
	Reference string `json:"reference"`
	Payee     string `json:"payee"`
	Account   string `json:"account"`
	Cents     int64  `json:"cents"`
}

// transfer is the result of a payout.
type transfer struct {
	TransferID string `json:"transfer_id"`
	// Repeated is whether an earlier call with the same key had made it.
	Repeated bool `json:"repeated"`
}

func newPayout(r *rand.Rand) any {
	account := fmt.Sprintf("DE%020d", r.Uint64N(1e18))
	if r.Float64() < closedAccounts {
		account = closedPrefix + account
	}
	return payout{
		Reference: fmt.Sprintf("P-%016x", r.Uint64()), Account: account, Cents: 100 + r.Int64N(500_000),
		Payee: pick(r, []string{"Bäckerei Sommer", "Northwind Books", "Café Aurora", "Kilo & Sons", "Atelier Miró"}),
	}
}

// bankStats is what the bank saw. Numbers of calls, but where it says otherwise.
type bankStats struct {
	Calls       int   `json:"calls"`
	InFlight    int   `json:"-"`
	InFlightMax int   `json:"in_flight_max"`
	Busy        int   `json:"busy"`
	Dropped     int   `json:"dropped"`  // hung or answer lost
	Refused     int   `json:"refused"`  // account closed
	Repeats     int   `json:"repeats"`  // answered with the earlier transfer
	Overlaps    int   `json:"overlaps"` // of two calls with one key at once
	Paid        int   `json:"paid"`     // transfers
	PaidCents   int64 `json:"paid_cents"`
	PaidTwice   int   `json:"paid_twice"` // references
}

// bank is a flaky bank beside the engine. It is honest in one thing: the same idempotency key never pays twice. It is
// safe for concurrent use.
type bank struct {
	mu          sync.Mutex
	random      *rand.Rand
	stats       bankStats
	open        map[string]bool     // keys of calls in flight
	transfers   map[string]transfer // by key
	byReference map[string]int
}

func newBank(r *rand.Rand) *bank {
	return &bank{random: r, open: map[string]bool{}, transfers: map[string]transfer{}, byReference: map[string]int{}}
}

// send makes one payout. The task's id is the idempotency key, so all attempts
// of a task are one transfer, also where an answer was lost.
func (b *bank) send(ctx context.Context, p payout) (transfer, error) {
	return b.call(ctx, yard.Info(ctx).TaskID, p)
}

// call is one call at the bank. Chance decides what becomes of it.
func (b *bank) call(ctx context.Context, key string, p payout) (transfer, error) {
	chance, takes, fresh := b.enter(key)
	if !fresh {
		defer b.leave("")
		return transfer{}, &bankError{"bank.overlap", "a call with this key is in flight"}
	}
	defer b.leave(key)
	switch {
	case chance < bankBusy:
		b.count(func(s *bankStats) { s.Busy++ })
		return transfer{}, &bankError{"bank.busy", "too many customers"}
	case chance < bankBusy+bankHangs:
		backoff.Sleep(ctx, bankHangsFor)
		return transfer{}, b.drop()
	}
	backoff.Sleep(ctx, takes)
	if strings.HasPrefix(p.Account, closedPrefix) {
		b.count(func(s *bankStats) { s.Refused++ })
		refused := &bankError{"bank.account_closed", "account closed"}
		return transfer{}, yard.NonRetryable(fmt.Errorf("%w: %w", errForGood, refused))
	}
	made := b.pay(key, p)
	if chance < bankBusy+bankHangs+bankForgets {
		return transfer{}, b.drop()
	}
	return made, nil
}

// drop ends a call without an answer.
func (b *bank) drop() error {
	b.count(func(s *bankStats) { s.Dropped++ })
	return &bankError{"bank.no_answer", "the call ended without an answer"}
}

// enter counts a call in, and draws its chance and how long it takes. It is not fresh where
// another call with its key is in flight.
func (b *bank) enter(key string) (chance float64, takes time.Duration, fresh bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stats.Calls++
	b.stats.InFlight++
	b.stats.InFlightMax = max(b.stats.InFlightMax, b.stats.InFlight)
	if b.open[key] {
		b.stats.Overlaps++
		return 0, 0, false
	}
	b.open[key] = true
	return b.random.Float64(), bankTakesMin + time.Duration(b.random.Int64N(int64(bankTakesMax-bankTakesMin))), true
}

func (b *bank) leave(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stats.InFlight--
	delete(b.open, key)
}

func (b *bank) count(f func(*bankStats)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f(&b.stats)
}

// pay makes a transfer, or finds the one that its key has made.
func (b *bank) pay(key string, p payout) transfer {
	b.mu.Lock()
	defer b.mu.Unlock()
	if made, ok := b.transfers[key]; ok {
		b.stats.Repeats++
		made.Repeated = true
		return made
	}
	made := transfer{TransferID: fmt.Sprintf("T%08d", len(b.transfers)+1)}
	b.transfers[key] = made
	b.stats.Paid++
	b.stats.PaidCents += p.Cents
	if b.byReference[p.Reference]++; b.byReference[p.Reference] == 2 {
		b.stats.PaidTwice++
	}
	return made
}

func (b *bank) snapshot() bankStats {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.stats
}

// hasPaid reports whether a transfer with this key was made.
func (b *bank) hasPaid(key string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, ok := b.transfers[key]
	return ok
}

// bankError is a failed call; its kind is what `yard task get` shows as error type.
type bankError struct{ kind, what string }

func (e *bankError) Error() string     { return "the bank: " + e.what }
func (e *bankError) ErrorType() string { return e.kind }
