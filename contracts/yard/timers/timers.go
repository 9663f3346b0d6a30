// Package timers looks ahead: how many tasks of a domain are due when.
//
// Owns: the Go form of the counts, and their call. Never does: count; the engine does. To list the tasks use Client.Tasks with Filter.DueWithin. The next runs of
// schedules are no tasks yet: package schedules shows them.
//
// On failure: a call returns a *fault.Error, matched by code as those of package yard are. It is safe to repeat, and is repeated as the Client's are.
//
//	ahead, err := timers.Count(ctx, client, timers.Query{Within: 24 * time.Hour, Span: time.Hour})
package timers

import (
	"context"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

// Query says which tasks are counted, and how.
type Query struct {
	// Tasklist and Type: only those of them. Default: all.
	Tasklist, Type string
	// Within is how far to look ahead, up to 366 days. Default: a day. The last span is a whole one.
	Within time.Duration
	// Span is the length of a span: whole minutes, up to 7 days, and at most 1000 spans within Within. Default: an hour. A span begins at a multiple of its
	// length since the epoch of Unix time: those of an hour or a day are hours and days of UTC, those of 7 days begin on Thursdays.
	Span time.Duration
}

// Counts are the tasks that are due in the time to come.
type Counts struct {
	// Spans are those with tasks, in order. The first one has the overdue tasks too.
	Spans []Span
	// Kinds are the tasklists and types with the most of these tasks, the largest first, at most 100.
	Kinds []Kind
	// Tasks are in all spans. Later ones are due after the last span; a query for a type has no count of them.
	Tasks, Later int64

	wire *yardv1.CountTimersResponse
}

// Span is a span of time in which tasks are due: from Start on, and before End.
type Span struct {
	Start, End time.Time
	Tasks      int64
}

// Kind is how many tasks of a tasklist and a type are due. Without a type it is the further types of the tasklist, without both the further tasklists: if a
// domain has more than 1000 kinds, not all are counted by name.
type Kind struct {
	Tasklist, Type string
	Tasks          int64
}

// Wire is c as it travels.
func (c *Counts) Wire() *yardv1.CountTimersResponse { return c.wire }

// Count counts the tasks that wait for their time: delayed ones, and those that wait more than 10 s for their next attempt.
func Count(ctx context.Context, c *yard.Client, q Query) (*Counts, error) {
	resp, err := yard.Call[yardv1.CountTimersResponse](ctx, c, "timers.count", &yardv1.CountTimersRequest{
		Tasklist: q.Tasklist, Type: q.Type, WithinMs: q.Within.Milliseconds(), SpanMs: q.Span.Milliseconds(),
	})
	if err != nil {
		return nil, err
	}
	counts := &Counts{Tasks: resp.Tasks, Later: resp.Later, wire: resp}
	for _, s := range resp.Spans {
		counts.Spans = append(counts.Spans, Span{time.UnixMilli(s.StartMs), time.UnixMilli(s.EndMs), s.Tasks})
	}
	for _, k := range resp.Counts {
		counts.Kinds = append(counts.Kinds, Kind{k.Tasklist, k.Type, k.Tasks})
	}
	return counts, nil
}
