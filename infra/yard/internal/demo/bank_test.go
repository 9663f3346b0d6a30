package demo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func bankOf(seed uint64) *bank { return newBank(rand.New(rand.NewPCG(seed, 0))) }

// persist repeats a call until the bank takes it or refuses it for good.
func persist(ctx context.Context, b *bank, key string, p payout) (transfer, error) {
	for {
		made, err := b.call(ctx, key, p)
		if err == nil || errors.Is(err, errForGood) || ctx.Err() != nil {
			return made, err
		}
	}
}

func TestBankPaysEveryTransferOnceHoweverOftenItIsAsked(t *testing.T) {
	b := bankOf(1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	const transfers, atOnce = 120, 8
	keys := make(chan int)
	var callers sync.WaitGroup
	for range atOnce {
		callers.Go(func() {
			for i := range keys {
				if _, err := persist(ctx, b, fmt.Sprintf("key%d", i), payout{Reference: fmt.Sprintf("R%d", i), Cents: 100}); err != nil {
					t.Errorf("transfer %d: %v", i, err)
				}
			}
		})
	}
	for i := range transfers {
		keys <- i
	}
	close(keys)
	callers.Wait()
	s := b.snapshot()
	if s.Paid != transfers || s.PaidCents != 100*transfers || s.PaidTwice != 0 {
		t.Errorf("%d of %d paid, %d cents, %d twice", s.Paid, transfers, s.PaidCents, s.PaidTwice)
	}
	if s.Busy == 0 || s.Dropped == 0 || s.Repeats == 0 {
		t.Errorf("this seed shows no trouble: %+v", s)
	}
	if s.InFlight != 0 || s.InFlightMax < 2 || s.InFlightMax > atOnce {
		t.Errorf("%d in flight at the end and %d at most, with %d callers", s.InFlight, s.InFlightMax, atOnce)
	}
}

func TestBankCountsTheSameReferencePaidUnderTwoKeys(t *testing.T) {
	b, p := bankOf(2), payout{Reference: "R1", Cents: 5}
	first, err1 := persist(t.Context(), b, "a", p)
	second, err2 := persist(t.Context(), b, "b", p)
	if err1 != nil || err2 != nil || first.TransferID == second.TransferID {
		t.Fatalf("%v %v, %v %v", first, err1, second, err2)
	}
	if s := b.snapshot(); s.PaidTwice != 1 || s.Paid != 2 {
		t.Errorf("paid %d, twice %d; want 2 and 1", s.Paid, s.PaidTwice)
	}
	again, err := persist(t.Context(), b, "a", p)
	if err != nil || again.TransferID != first.TransferID || !again.Repeated {
		t.Errorf("the repeat is %+v %v, want %s again", again, err, first.TransferID)
	}
	if !b.hasPaid("a") || b.hasPaid("c") {
		t.Errorf("the bank's books are wrong")
	}
}

func TestBankRefusesForGood(t *testing.T) {
	b := bankOf(3)
	_, err := persist(t.Context(), b, "k", payout{Reference: "R", Account: closedPrefix + "1", Cents: 1})
	var refused *bankError
	if !errors.Is(err, errForGood) || !errors.As(err, &refused) || refused.ErrorType() != "bank.account_closed" {
		t.Errorf("got %v", err)
	}
	if s := b.snapshot(); s.Paid != 0 || s.Refused != 1 {
		t.Errorf("the bank counts %+v", s)
	}
}

// Two calls with one key at once are two attempts of one task at once: the bank sees that by itself.
func TestBankRefusesASecondCallWithAKeyInFlight(t *testing.T) {
	b := bankOf(4)
	if _, _, fresh := b.enter("k"); !fresh {
		t.Fatal("the first call is not fresh")
	}
	_, err := b.call(t.Context(), "k", payout{Reference: "R", Cents: 1})
	var refused *bankError
	if !errors.As(err, &refused) || refused.ErrorType() != "bank.overlap" || errors.Is(err, errForGood) {
		t.Errorf("got %v", err)
	}
	testkit.Equal(t, "overlaps", b.snapshot().Overlaps, 1)
}
