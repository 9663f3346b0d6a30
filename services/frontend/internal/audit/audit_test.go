package audit_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/signalkit"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/audit"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/call"
)

// store is an audit.Store in memory, which may refuse.
type store struct {
	err error
	all []string
}

func (s *store) Append(_ context.Context, domain string, data []byte) error {
	if s.err != nil {
		return s.err
	}
	var e yardv1.AuditEntry
	if err := json.Unmarshal(data, &e); err != nil {
		return err
	}
	s.all = append(s.all, strings.TrimSpace(domain+" "+e.Verb+" "+e.Code))
	return nil
}

func (s *store) Last(context.Context, string) ([][]byte, error) { return nil, s.err }

// stored has a log record what do asks it to, and returns what it stored.
func stored(t *testing.T, s *store, l *audit.Log, do func()) []string {
	t.Helper()
	do()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	testkit.NoError(t, l.Run(over))
	return s.all
}

// TestWhatWasCarriedOutIsRecorded: a purge of many steps once, and one of unknown outcome as such.
func TestWhatWasCarriedOutIsRecorded(t *testing.T) {
	s := &store{}
	l := audit.New(s, nil, signalkit.Metrics(t), slog.New(slog.DiscardHandler))
	c, later := call.Call{Domain: "shop", Now: time.UnixMilli(5)}, call.Call{Domain: "shop", Now: time.UnixMilli(120_000)}
	answers := 0
	got := stored(t, s, l, func() {
		next := func(codec.Message, error) { answers++ }
		l.Answer(c, "tasklists.purge", "", &yardv1.PurgeRequest{Name: "a"}, next)(nil, nil)
		l.Answer(c, "tasklists.purge", "", &yardv1.PurgeRequest{Name: "a", Cursor: "b", Limit: 5}, next)(nil, nil)
		l.Answer(c, "tasklists.purge", "", &yardv1.PurgeRequest{Name: "other", Cursor: "made up"}, next)(nil, nil)
		l.Answer(later, "tasklists.purge", "", &yardv1.PurgeRequest{Name: "a"}, next)(nil, nil)
		l.Answer(c, "tasklists.purge", "", &yardv1.PurgeRequest{Name: "a", Preview: true}, next)(nil, nil)
		l.Answer(c, "limits.put", "", &yardv1.PutLimitRequest{}, next)(nil, fault.New(fault.InvalidArgument, "no"))
		l.Answer(c, "limits.delete", "", &yardv1.DeleteLimitRequest{}, next)(nil, fault.New(fault.Unavailable, "no answer"))
	})
	testkit.Equal(t, "stored", got, []string{"shop tasklists.purge", "shop tasklists.purge", "shop tasklists.purge", "shop limits.delete UNAVAILABLE"})
	testkit.Equal(t, "answers", answers, 7)
}

// TestRequestsAreAnsweredThoughTheAuditIsNotStored: what is lost is counted, if the store refuses, and if too much waits for it.
func TestRequestsAreAnsweredThoughTheAuditIsNotStored(t *testing.T) {
	const n = 2000
	s, metrics := &store{err: errors.New("no space")}, signalkit.Metrics(t)
	l := audit.New(s, nil, metrics, slog.New(slog.DiscardHandler))
	answers := 0
	stored(t, s, l, func() {
		for range n {
			l.Answer(call.Call{Domain: "shop"}, "types.put", "", &yardv1.PutTypeRequest{}, func(codec.Message, error) { answers++ })(nil, nil)
		}
	})
	testkit.Equal(t, "answers", answers, n)
	testkit.Equal(t, "lost", metrics.Counter(signals.AuditLost).Value(), int64(n))
}

// TestI14_ADomainTakesNoRoomOfAnother in the queue.
func TestI14_ADomainTakesNoRoomOfAnother(t *testing.T) {
	s := &store{}
	l := audit.New(s, nil, signalkit.Metrics(t), slog.New(slog.DiscardHandler))
	got := stored(t, s, l, func() {
		for range 2000 {
			l.Answer(call.Call{Domain: "flood"}, "types.put", "", &yardv1.PutTypeRequest{}, func(codec.Message, error) {})(nil, nil)
		}
		l.Answer(call.Call{Domain: "shop"}, "limits.delete", "", &yardv1.DeleteLimitRequest{}, func(codec.Message, error) {})(nil, nil)
	})
	testkit.Equal(t, "the last that was stored", got[len(got)-1], "shop limits.delete")
}

func TestWhichVerbsAreRecorded(t *testing.T) {
	for verb, want := range map[string]bool{
		"tasklists.pause": true, "deadletters.redrive": true, "schedules.put": true, "domains.put": true, "batches.cancel": true, "workers.stop": true, "of.later": true,
		"tasks.submit": false, "tasks.poll.tasklist": false, "tasks.cancel": false, "batches.create": false, "tasklists.describe": false, "domains.list": false, "audit.list": false,
		"domains.audit": false,
	} {
		testkit.Equal(t, verb, audit.Records(verb), want)
	}
}
