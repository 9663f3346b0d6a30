package schedules

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestAScheduleRunsAgainAfterManyExcludedTimes: one search for a time passes fewer of them than there are.
func TestAScheduleRunsAgainAfterManyExcludedTimes(t *testing.T) {
	inBubble(t, func(t *testing.T, l *log, since time.Time) {
		defer l.keep(t)()
		time.Sleep(time.Until(time.Date(since.Year(), since.Month(), since.Day(), 23, 55, 0, 0, time.UTC)))
		began := time.Now()
		l.put(t, "s", func(s *yardv1.Schedule) {
			s.Cron, s.ExcludeCron = []string{"*/2 * * * *"}, []string{fmt.Sprintf("*/2 * * * %d,%d", began.AddDate(0, 0, 1).Weekday(), began.AddDate(0, 0, 2).Weekday())}
		})
		time.Sleep(48*time.Hour + 8*time.Minute)
		testkit.Equal(t, "runs", fmt.Sprint(l.times(began)), fmt.Sprint([]int64{60, 180, 48*3600 + 300, 48*3600 + 420}))
	})
}

// racing has a schedule deleted just before its keeper reads it, and made again just behind.
type racing struct {
	*log
	replace func()
}

func (r *racing) Load(ctx context.Context, n Name) (*Loaded, error) {
	if r.replace == nil {
		return r.log.Load(ctx, n)
	}
	r.log.edit(n.Schedule, func(h *logv1.ScheduleHome) { h.Deleted = true })
	was, err := r.log.Load(ctx, n)
	replace := r.replace
	r.replace = nil
	replace()
	time.Sleep(time.Second) // the keeper follows the log meanwhile
	return was, err
}

func TestAScheduleThatIsMadeAgainRuns(t *testing.T) {
	inBubble(t, func(t *testing.T, l *log, since time.Time) {
		l.put(t, "s", everyMinute)
		r := &racing{log: l}
		r.replace = func() { l.put(t, "s", everyMinute) }
		defer l.keepWith(t, r)()
		time.Sleep(3*time.Minute + time.Second)
		testkit.Equal(t, "runs", fmt.Sprint(l.times(since)), "[120 180]")
	})
}

// asked counts the questions whether a task has ended.
type asked struct {
	*log
	n int
}

func (a *asked) Ended(context.Context, string, ids.TaskID) (bool, error) {
	a.n++
	return false, nil
}

func TestOneTaskThatHasNotEndedIsEnough(t *testing.T) {
	inBubble(t, func(t *testing.T, l *log, _ time.Time) {
		l.put(t, "s", func(s *yardv1.Schedule) {
			everyMinute(s)
			s.Overlap = yardv1.Overlap_OVERLAP_SKIP
		})
		l.edit("s", func(h *logv1.ScheduleHome) {
			for i := range 100 {
				id := ids.NewTaskID(time.Now(), 1, uint64(i))
				h.Running = append(h.Running, id[:])
			}
		})
		a := &asked{log: l}
		stop := l.keepWith(t, a)
		time.Sleep(time.Minute + time.Second)
		stop()
		testkit.Equal(t, "questions", a.n, 1)
	})
}
