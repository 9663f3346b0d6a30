package quotas_test

import (
	"testing"
	"testing/synctest"
	"time"

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
