package sampler_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/sampler"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// counter is a topic that counts its samples.
func counter(kind, name string, calls *int) sampler.Topic {
	return sampler.Topic{Kind: kind, Name: name, Fetch: func(context.Context, sampler.Sample) (any, []float64, error) {
		*calls++
		return *calls, []float64{float64(*calls)}, nil
	}}
}

func inBubble(t *testing.T, do func(t *testing.T, s *sampler.Sampler)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer stop()
		do(t, sampler.New(ctx))
	})
}

func TestWatchersShareTheCallsOfATopic(t *testing.T) {
	inBubble(t, func(t *testing.T, s *sampler.Sampler) {
		calls := 0
		topic := counter("tasklist", "mail", &calls)
		first, err := s.Watch(topic)
		testkit.NoError(t, err)
		second, err := s.Watch(topic)
		testkit.NoError(t, err)
		time.Sleep(9*sampler.Every + sampler.Every/2)
		synctest.Wait()
		testkit.Equal(t, "calls with two watchers", calls, 10)
		testkit.Equal(t, "the newest sample", s.Last(topic).Value, any(10))
		<-first.Changed
		<-second.Changed
		first.Close()
		second.Close()
		second.Close()
		time.Sleep(time.Minute)
		synctest.Wait()
		testkit.Equal(t, "calls without a watcher", calls, 10)
		testkit.Equal(t, "a sample for a page", s.Last(topic).Value, any(11))
	})
}

func TestNumbersAreKeptForAnHour(t *testing.T) {
	inBubble(t, func(t *testing.T, s *sampler.Sampler) {
		calls := 0
		topic := counter("domain", "shop", &calls)
		w, err := s.Watch(topic)
		testkit.NoError(t, err)
		defer w.Close()
		time.Sleep(2 * sampler.KeepFor)
		hour := s.Hour(topic)
		if age := time.Since(hour[0].At); len(hour) > int(sampler.KeepFor/sampler.Every) || age > sampler.KeepFor+2*sampler.Every {
			t.Errorf("%d points, the oldest is %v old", len(hour), age)
		}
	})
}

func TestNumbersOfFewTopicsAreKept(t *testing.T) {
	inBubble(t, func(t *testing.T, s *sampler.Sampler) {
		calls := 0
		for i := range 60 {
			s.Last(counter("domain", fmt.Sprint(i), &calls))
			time.Sleep(time.Second)
		}
		testkit.Equal(t, "points of the first topic", len(s.Hour(counter("domain", "0", &calls))), 0)
		testkit.Equal(t, "points of the last topic", len(s.Hour(counter("domain", "59", &calls))), 1)
	})
}

func TestAFailedSampleLeavesTheOneBefore(t *testing.T) {
	inBubble(t, func(t *testing.T, s *sampler.Sampler) {
		broken, calls := errors.New("no answer"), 0
		topic := sampler.Topic{Kind: "cluster", Fetch: func(context.Context, sampler.Sample) (any, []float64, error) {
			if calls++; calls > 1 {
				return nil, nil, broken
			}
			return "fine", nil, nil
		}}
		s.Last(topic)
		time.Sleep(sampler.Every)
		last := s.Last(topic)
		if last.Value != "fine" || !errors.Is(last.Err, broken) {
			t.Errorf("%+v", last)
		}
		s.Last(topic)
		testkit.Equal(t, "calls in two seconds", calls, 2)
	})
}

func TestTooManyStreamsAreRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, s *sampler.Sampler) {
		calls := 0
		var err error
		for i := 0; err == nil && i < 10_000; i++ {
			_, err = s.Watch(counter("tasklist", "mail", &calls))
		}
		testkit.Code(t, "one watch too many", err, fault.ResourceExhausted)
	})
}

// TestRates: a counter that goes back belongs to a new owner, which counts from 0.
func TestRates(t *testing.T) {
	testkit.Equal(t, "a second", sampler.PerSecond(30, 10, 2), 10)
	testkit.Equal(t, "a new owner", sampler.PerSecond(30, 100, 2), 15)
	testkit.Equal(t, "no time", sampler.PerSecond(30, 10, 0), 0)
}
