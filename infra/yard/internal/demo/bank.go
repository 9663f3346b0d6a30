package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/yardmaster-io/yardmaster/shared/backoff"
)

// How bad the bank is. The fractions are of calls, and exclude each other.
const (
	bankBusy     = 0.10 // answers 503 at once
	bankHangs    = 0.05 // works for long, then drops the call unpaid
	bankForgets  = 0.05 // pays, then drops the call, so that the caller cannot know
	bankHangsFor = 150 * time.Millisecond
	bankTakesMin = 15 * time.Millisecond
	bankTakesMax = 45 * time.Millisecond
	bankBodyMax  = 4 << 10 // bytes of a request
	bankStopMax  = 2 * time.Second
)

// closedPrefix begins the account numbers that the bank refuses for good.
const closedPrefix = "CLOSED"

// headerIdempotencyKey makes a repeated call the same transfer.
const headerIdempotencyKey = "Idempotency-Key"

// transfer is a call's body.
type transfer struct {
	// Reference is the payer's own number of the payout: the same one paid twice
	// is money lost.
	Reference string `json:"reference"`
	Account   string `json:"account"`
	Cents     int64  `json:"cents"`
}

// transferred is the answer of a transfer that was made.
type transferred struct {
	TransferID string `json:"transfer_id"`
	// Repeated tells that an earlier call with this key had made it.
	Repeated bool `json:"repeated"`
}

// bankStats is what the bank saw. Numbers of calls, but where it says otherwise.
type bankStats struct {
	Calls       int   `json:"calls"`
	InFlight    int   `json:"-"`
	InFlightMax int   `json:"in_flight_max"`
	Busy        int   `json:"busy"`
	Dropped     int   `json:"dropped"`   // hung or answer lost
	Refused     int   `json:"refused"`   // account closed
	Malformed   int   `json:"malformed"` // calls no bank takes, such as those without key
	Repeats     int   `json:"repeats"`   // answered with the earlier transfer
	Overlaps    int   `json:"overlaps"`  // of two calls with one key at once
	Paid        int   `json:"paid"`      // transfers
	PaidCents   int64 `json:"paid_cents"`
	PaidTwice   int   `json:"paid_twice"` // references
}

// bank is a flaky bank: an HTTP server on a loopback port. It is honest in one
// thing: the same idempotency key never pays twice.
type bank struct {
	listener net.Listener

	mu          sync.Mutex
	rng         *rand.Rand
	stats       bankStats
	open        map[string]bool        // keys of calls in flight
	transfers   map[string]transferred // by key
	byReference map[string]int
}

// newBank opens a bank; it serves while Run runs.
func newBank(seed uint64) (*bank, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("open the bank: %w", err)
	}
	return &bank{
		listener: listener, rng: rand.New(rand.NewPCG(seed, streamBank)),
		open: map[string]bool{}, transfers: map[string]transferred{}, byReference: map[string]int{},
	}, nil
}

// url is where transfers are posted to.
func (b *bank) url() string { return "http://" + b.listener.Addr().String() + "/transfers" }

// Run serves until ctx ends.
func (b *bank) Run(ctx context.Context) error {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /transfers", b.serve)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	stopped := make(chan error, 1)
	release := context.AfterFunc(ctx, func() {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), bankStopMax)
		defer cancel()
		stopped <- server.Shutdown(limited)
	})
	if err := server.Serve(b.listener); !errors.Is(err, http.ErrServerClosed) {
		release()
		return fmt.Errorf("the bank: %w", err)
	}
	return <-stopped
}

func (b *bank) snapshot() bankStats {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.stats
}

// hasPaid tells whether a transfer with this key was made.
func (b *bank) hasPaid(key string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, ok := b.transfers[key]
	return ok
}

// mood is what the bank does to one call.
type mood int

const (
	moodWell mood = iota
	moodBusy
	moodHangs
	moodForgets
)

// serve handles one transfer. All of its calls leave before the answer is
// written (net/http sends small answers after the handler), so a caller that has
// its answer is not counted as in flight any more.
func (b *bank) serve(w http.ResponseWriter, r *http.Request) {
	key := r.Header.Get(headerIdempotencyKey)
	mood, takes, fresh := b.enter(key)
	if !fresh {
		defer b.leave("")
		respond(w, http.StatusConflict, problem{"a call with this key is under way"})
		return
	}
	defer b.leave(key)
	var t transfer
	body := http.MaxBytesReader(w, r.Body, bankBodyMax)
	if err := json.NewDecoder(body).Decode(&t); err != nil || key == "" || t.Reference == "" || t.Cents <= 0 {
		b.count(func(s *bankStats) { s.Malformed++ })
		respond(w, http.StatusBadRequest, problem{"a transfer needs a key, a reference and an amount"})
		return
	}
	if mood == moodBusy {
		b.count(func(s *bankStats) { s.Busy++ })
		respond(w, http.StatusServiceUnavailable, problem{"too many customers"})
		return
	}
	backoff.Sleep(r.Context(), takes)
	switch {
	case mood == moodHangs:
		b.drop()
	case strings.HasPrefix(t.Account, closedPrefix):
		b.count(func(s *bankStats) { s.Refused++ })
		respond(w, http.StatusUnprocessableEntity, problem{"account closed"})
	default:
		answer := b.pay(key, t)
		if mood == moodForgets {
			b.drop()
		}
		respond(w, http.StatusCreated, answer)
	}
}

// drop ends a call without an answer.
func (b *bank) drop() {
	b.count(func(s *bankStats) { s.Dropped++ })
	panic(http.ErrAbortHandler) // net/http's own way to break the connection
}

// enter counts a call in and decides its fate. It is not fresh where another
// call with its key is in flight.
func (b *bank) enter(key string) (m mood, takes time.Duration, fresh bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stats.Calls++
	b.stats.InFlight++
	b.stats.InFlightMax = max(b.stats.InFlightMax, b.stats.InFlight)
	if key != "" && b.open[key] {
		b.stats.Overlaps++
		return moodWell, 0, false
	}
	b.open[key] = true
	takes = bankTakesMin + time.Duration(b.rng.Int64N(int64(bankTakesMax-bankTakesMin)))
	switch p := b.rng.Float64(); {
	case p < bankBusy:
		return moodBusy, 0, true
	case p < bankBusy+bankHangs:
		return moodHangs, bankHangsFor, true
	case p < bankBusy+bankHangs+bankForgets:
		return moodForgets, takes, true
	default:
		return moodWell, takes, true
	}
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
func (b *bank) pay(key string, t transfer) transferred {
	b.mu.Lock()
	defer b.mu.Unlock()
	if made, ok := b.transfers[key]; ok {
		b.stats.Repeats++
		made.Repeated = true
		return made
	}
	made := transferred{TransferID: fmt.Sprintf("T%08d", len(b.transfers)+1)}
	b.transfers[key] = made
	b.stats.Paid++
	b.stats.PaidCents += t.Cents
	if b.byReference[t.Reference]++; b.byReference[t.Reference] == 2 {
		b.stats.PaidTwice++
	}
	return made
}

// problem is the body of a refusal.
type problem struct {
	Error string `json:"error"`
}

func respond(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// A caller that went away is no trouble of the bank's.
	_ = json.NewEncoder(w).Encode(body)
}
