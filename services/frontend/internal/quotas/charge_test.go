package quotas_test

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/quotas"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestAChargeIsTakenOnce and refused for good; what is returned before or after is not counted, here and elsewhere.
func TestAChargeIsTakenOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, put := catalogOf()
		put(`{"submit_tasks_per_s":10,"submit_bytes_per_s":1000}`)
		all := frontends(t, c, 2).all
		large := all[0].Charge("shop", 30, 2000)
		large.Return(10)
		for range 3 {
			testkit.NoError(t, large.Take())
		}
		all[0].Charge("shop", 30, 2000).Return(30) // it was not taken
		refused := all[0].Charge("shop", 1, 1)
		wantOver(t, refused.Take())
		time.Sleep(150 * time.Millisecond)
		wantOver(t, submit(all[1], "shop", 1, 1))
		large.Return(100)
		large.Return(100)
		time.Sleep(100 * time.Millisecond)
		for _, q := range all {
			testkit.NoError(t, submit(q, "shop", 1, 1))
		}
		wantOver(t, refused.Take())
		time.Sleep(900 * time.Millisecond)
		testkit.Equal(t, "was submitted", all[0].Use(c.Domain("shop")).SubmitTasksPerS, 2)
		none := all[0].Charge("free", 30, 2000)
		testkit.NoError(t, none.Take())
		none.Return(30)
	})
}

// TestAChargeReturnsNoMoreThanItTook: neither at once nor in parts, so what the domain submitted by other requests still counts.
func TestAChargeReturnsNoMoreThanItTook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, put := catalogOf()
		put(`{"waiting_tasks":100}`)
		q := frontends(t, c, 1).all[0]
		testkit.NoError(t, submit(q, "shop", 99, 99))
		charge := q.Charge("shop", 1, 1)
		testkit.NoError(t, charge.Take())
		charge.Failed(1, fault.New(fault.Unknown, "it may be stored"))
		wantOver(t, submit(q, "shop", 1, 1))
		charge.Return(50)
		charge.Return(50)
		testkit.NoError(t, submit(q, "shop", 1, 1))
		wantOver(t, submit(q, "shop", 1, 1))
		charge.Return(1)
		wantOver(t, submit(q, "shop", 1, 1))
	})
}

// TestAFloodOfBytesIsRefusedBeforeItIsReported, and what is a second old counts no more.
func TestAFloodOfBytesIsRefusedBeforeItIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, put := catalogOf()
		put(`{"stored_bytes":1000}`)
		q := quotas.New(c, func([]byte) error { return nil }, nil, slog.New(slog.DiscardHandler))
		testkit.NoError(t, submit(q, "shop", 1, 1000))
		wantOver(t, submit(q, "shop", 1, 1))
		time.Sleep(1500 * time.Millisecond)
		testkit.NoError(t, submit(q, "shop", 1, 1))
	})
}
