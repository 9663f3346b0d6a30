package demo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// openBank runs a bank until the test ends.
func openBank(t *testing.T, seed uint64) (*bank, *teller) {
	t.Helper()
	b, err := newBank(seed)
	testkit.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		testkit.Check(t, <-ended)
	})
	return b, newTeller(b.url())
}

// persist repeats a transfer until the bank takes it or refuses it for good.
func persist(ctx context.Context, teller *teller, key string, order transfer) (transferred, error) {
	for {
		made, err := teller.transfer(ctx, key, order)
		if err == nil || errors.Is(err, errForGood) || ctx.Err() != nil {
			return made, err
		}
	}
}

func TestBankPaysEveryTransferOnceHoweverOftenItIsAsked(t *testing.T) {
	b, teller := openBank(t, 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	const transfers, atOnce = 120, 8
	keys := make(chan int)
	var tellers sync.WaitGroup
	for range atOnce {
		tellers.Go(func() {
			for i := range keys {
				order := transfer{Reference: fmt.Sprintf("R%d", i), Account: "DE1", Cents: 100}
				if _, err := persist(ctx, teller, fmt.Sprintf("key%d", i), order); err != nil {
					t.Errorf("transfer %d: %v", i, err)
				}
			}
		})
	}
	for i := range transfers {
		keys <- i
	}
	close(keys)
	tellers.Wait()
	s := b.snapshot()
	if s.Paid != transfers || s.PaidCents != 100*transfers || s.PaidTwice != 0 {
		t.Errorf("%d of %d paid, %d cents, %d twice", s.Paid, transfers, s.PaidCents, s.PaidTwice)
	}
	if s.Busy == 0 || s.Dropped == 0 || s.Repeats == 0 {
		t.Errorf("this seed shows no trouble: %+v", s)
	}
	if s.InFlight != 0 || s.InFlightMax < 2 || s.InFlightMax > atOnce {
		t.Errorf("%d in flight at the end and %d at most, with %d tellers", s.InFlight, s.InFlightMax, atOnce)
	}
}

func TestBankCountsTheSameReferencePaidUnderTwoKeys(t *testing.T) {
	b, teller := openBank(t, 2)
	order := transfer{Reference: "R1", Account: "DE1", Cents: 5}
	first, err1 := persist(t.Context(), teller, "a", order)
	second, err2 := persist(t.Context(), teller, "b", order)
	if err1 != nil || err2 != nil || first.TransferID == second.TransferID {
		t.Fatalf("%v %v, %v %v", first, err1, second, err2)
	}
	if s := b.snapshot(); s.PaidTwice != 1 || s.Paid != 2 {
		t.Errorf("paid %d, twice %d; want 2 and 1", s.Paid, s.PaidTwice)
	}
	again, err := persist(t.Context(), teller, "a", order)
	if err != nil || again.TransferID != first.TransferID || !again.Repeated {
		t.Errorf("the repeat is %+v %v, want %s again", again, err, first.TransferID)
	}
	if !b.hasPaid("a") || b.hasPaid("c") {
		t.Errorf("the bank's books are wrong")
	}
}

func TestBankRefusesForGood(t *testing.T) {
	b, teller := openBank(t, 3)
	for name, c := range map[string]struct {
		key   string
		order transfer
		kind  string
	}{
		"closed account": {"k1", transfer{Reference: "R1", Account: closedPrefix + "1", Cents: 1}, "bank.422"},
		"no key":         {"", transfer{Reference: "R2", Account: "DE1", Cents: 1}, "bank.400"},
		"no amount":      {"k3", transfer{Reference: "R3", Account: "DE1"}, "bank.400"},
		"no reference":   {"k4", transfer{Account: "DE1", Cents: 1}, "bank.400"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := persist(t.Context(), teller, c.key, c.order)
			var refused *bankError
			if !errors.Is(err, errForGood) || !errors.As(err, &refused) || refused.ErrorType() != c.kind {
				t.Errorf("got %v, want %s for good", err, c.kind)
			}
		})
	}
	if s := b.snapshot(); s.Paid != 0 || s.Refused != 1 || s.Malformed != 3 {
		t.Errorf("the bank counts %+v", s)
	}
}

func TestRefusalsThatPassAreRetried(t *testing.T) {
	for _, status := range []int{http.StatusServiceUnavailable, http.StatusConflict, http.StatusInternalServerError} {
		if err := refusal(status, nil); errors.Is(err, errForGood) || err == nil {
			t.Errorf("status %d gives %v", status, err)
		}
	}
}

func TestAttemptWithoutAnswerSaysSo(t *testing.T) {
	b, err := newBank(4)
	testkit.NoError(t, err)
	url := b.url()
	testkit.NoError(t, b.listener.Close())
	_, err = newTeller(url).send(t.Context(), payout{Reference: "R", Cents: 1})
	var refused *bankError
	if !errors.As(err, &refused) || refused.ErrorType() != "bank.no_answer" || !strings.Contains(err.Error(), "the bank") {
		t.Errorf("got %v", err)
	}
	if errors.Is(err, errForGood) {
		t.Errorf("a bank that is away may come back")
	}
}
