package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

const (
	domainPayouts = "payouts"
	typePayout    = "payout.send"
	// payoutsMax is the limit of the demo: the bank takes no more calls at once
	// from one customer, however many workers there are.
	payoutsMax = 3
	// payoutsScaleMax: what the bank takes, some 80 calls a second, does not grow
	// with the demo.
	payoutsScaleMax = 1.0
	settlementSize  = 80
	// closedAccounts is the fraction of payees whose account is closed.
	closedAccounts = 0.02
)

// payout is the payload of a payout.
type payout struct {
	Reference string `json:"reference"`
	Payee     string `json:"payee"`
	Account   string `json:"account"`
	Cents     int64  `json:"cents"`
}

// newPayouts is the tenant that pays: a cluster-wide limit on a type, retries
// with back-off, idempotency, dead letters.
func newPayouts(b *bank) tenant {
	teller := newTeller(b.url())
	return tenant{
		domain: domainPayouts, tasklist: "payouts", description: "Payouts to merchants through a flaky bank",
		types: []yard.TaskType{{
			Name: typePayout, MaxConcurrency: payoutsMax, StartToClose: 30 * time.Second,
			Retry: &yard.RetryPolicy{MaxAttempts: 12, InitialInterval: 100 * time.Millisecond, Backoff: 2, MaxInterval: 2 * time.Second},
		}},
		concurrency: 4, // of each worker: two of them could overrun the limit
		register: func(w *yard.Worker) {
			yard.Handle(w, typePayout, teller.send)
		},
		flows: []flow{{every: 2 * time.Second, tasks: settlement}},
	}
}

// settlement is a batch of payouts that became due together.
func settlement(r *rand.Rand, scale float64) []yard.Task {
	tasks := make([]yard.Task, scaled(r, settlementSize*min(scale, payoutsScaleMax)))
	for i := range tasks {
		account := fmt.Sprintf("DE%020d", r.Uint64N(1e18))
		if r.Float64() < closedAccounts {
			account = closedPrefix + account
		}
		tasks[i] = yard.Task{Type: typePayout, Payload: payout{
			Reference: fmt.Sprintf("P-%016x", r.Uint64()), Payee: pick(r, merchants()), Account: account,
			Cents: 100 + r.Int64N(500_000),
		}}
	}
	return tasks
}

func merchants() []string {
	return []string{"Bäckerei Sommer", "Northwind Books", "Café Aurora", "Kilo & Sons", "Atelier Miró", "Green Grocer 24"}
}

// teller calls the bank.
type teller struct {
	url    string
	client *http.Client
}

func newTeller(url string) *teller {
	// A connection per call: on a used one net/http repeats calls that carry an
	// idempotency key by itself, and the engine's retries are what we want to see.
	return &teller{url: url, client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
}

// send makes one payout. The task's id is the idempotency key, so all attempts
// of a task are one transfer, also where an answer was lost.
func (t *teller) send(ctx context.Context, p payout) (transferred, error) {
	return t.transfer(ctx, yard.Info(ctx).TaskID, transfer{Reference: p.Reference, Account: p.Account, Cents: p.Cents})
}

func (t *teller) transfer(ctx context.Context, key string, order transfer) (transferred, error) {
	body, err := json.Marshal(order)
	if err != nil {
		return transferred{}, fmt.Errorf("encode the transfer: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.url, bytes.NewReader(body))
	if err != nil {
		return transferred{}, fmt.Errorf("make the call: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(headerIdempotencyKey, key)
	resp, err := t.client.Do(req)
	if err != nil {
		return transferred{}, &bankError{kind: "bank.no_answer", what: err.Error()}
	}
	defer func() { _ = resp.Body.Close() }() // read to its end below; nothing is left to fail
	answer, err := io.ReadAll(io.LimitReader(resp.Body, bankBodyMax))
	if err != nil {
		return transferred{}, &bankError{kind: "bank.no_answer", what: err.Error()}
	}
	if resp.StatusCode != http.StatusCreated {
		return transferred{}, refusal(resp.StatusCode, answer)
	}
	var made transferred
	if err := json.Unmarshal(answer, &made); err != nil {
		return transferred{}, fmt.Errorf("read the bank's answer: %w", err)
	}
	return made, nil
}

// refusal is the error of an answer that is none of success: what is the
// caller's fault stays so, whatever is tried.
func refusal(status int, answer []byte) error {
	var p problem
	if json.Unmarshal(answer, &p) != nil || p.Error == "" {
		p.Error = http.StatusText(status)
	}
	err := &bankError{kind: fmt.Sprintf("bank.%d", status), what: p.Error}
	if status >= 400 && status < 500 && status != http.StatusConflict {
		return yard.NonRetryable(fmt.Errorf("%w: %w", errForGood, err))
	}
	return err
}

// bankError is a failed call; its kind is what `yard task get` shows as error type.
type bankError struct{ kind, what string }

func (e *bankError) Error() string     { return "the bank: " + e.what }
func (e *bankError) ErrorType() string { return e.kind }
