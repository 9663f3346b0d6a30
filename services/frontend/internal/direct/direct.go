// Package direct starts tasks with their submit: the write that accepts a task also says which waiting poll has its first attempt.
//
// Owns: which tasks may start so, and the attempt as the worker gets it.
//
// A task may start directly if it is due and nothing but a worker is between it and its start: no order key, no batch, no limit, rate or pause that covers
// it. Nor do tasks that a lost attempt would cost too much: the frontend may be killed after the log has the start, and before the worker has the task.
//
// Never does: decide whether the attempt counts. History does, when it admits the task: an attempt that it does not take is stale, whatever its
// worker says of it.
//
// On failure: nothing here fails. Attempts that no one received are handed back (core/poll).
package direct

import (
	"math/rand/v2"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
)

const (
	// StoredWithin is how long after it was sent the log may store a start; a later one counts as none. HandedWithin is how old an
	// acknowledgement may be for the task to be handed over: clocks may differ by what is between the two.
	StoredWithin = 4 * time.Second
	HandedWithin = 2 * time.Second
)

// May tells whether a task may start with its submit.
func May(c *catalog.Catalog, domain string, r *logv1.Record, nowMS int64) bool {
	p := r.Policy
	return r.DueAtMs == 0 && r.DelayMs == 0 && r.Order == nil && r.BatchId == "" && r.Unique == nil &&
		p.GetMaxAttempts() > 1 && p.GetMaxDeliveries() == 0 && p.GetOnLost() == 0 && p.GetOnTimeout() == 0 &&
		free(c, domain, r.Tasklist, r.Type) && !paused(c, domain, r, nowMS)
}

// free tells whether no limit and no rate covers tasks of a type in a tasklist, which has one partition.
func free(c *catalog.Catalog, domain, tasklist, typ string) bool {
	d := c.Domain(domain)
	l := catalog.Tasklists.Of(c, domain, tasklist)
	t := catalog.Types.Of(c, domain, typ)
	return d != nil && d.MaxConcurrency == 0 && d.MaxConcurrencyPerGroup == 0 && d.Rate == nil &&
		l.GetMaxConcurrency() == 0 && l.GetMaxConcurrencyPerGroup() == 0 && l.GetRate() == nil &&
		t.GetMaxConcurrency() == 0 && t.GetMaxConcurrencyPerGroup() == 0 && t.GetRate() == nil && len(t.GetLimits()) == 0 &&
		Single(c, domain, tasklist)
}

// Single tells whether a tasklist has one partition, and will: only its polls may stay in a frontend.
func Single(c *catalog.Catalog, domain, tasklist string) bool {
	return c.Partitions(domain, tasklist) == 1 && catalog.Tasklists.Of(c, domain, tasklist).GetPartitionsMax() == 0
}

func paused(c *catalog.Catalog, domain string, r *logv1.Record, nowMS int64) bool {
	is := func(k catalog.Kind[*yardv1.Pause], in, name string) bool {
		return catalog.Paused(k.Of(c, in, name), nowMS)
	}
	p := &catalog.Pauses
	return is(p.Domains, "", domain) || is(p.Tasklists, domain, r.Tasklist) || is(p.Types, domain, r.Type) || r.Group != "" && is(p.Groups, domain, r.Group)
}

// Begin notes in a record that it starts directly, and returns the nonce of its attempt.
func Begin(r *logv1.Record, worker, workerID string, nowMS int64) uint64 {
	nonce := max(1, ids.Nonce(rand.Uint64(), false))
	r.Start = &logv1.DirectStart{Nonce: nonce, Worker: worker, WorkerId: workerID, NotAfterMs: nowMS + StoredWithin.Milliseconds()}
	return nonce
}

// Bytes is about what a task takes in an answer.
func Bytes(r *logv1.Record) int { return r.SizeVT() + tokenBytes }

// tokenBytes is what an answer has of a task and its record has not.
const tokenBytes = 100

// Token is that of the attempt that begins with the submit in a message of the log.
func Token(r *logv1.Record, seq uint64) ids.Token {
	return ids.Token{Position: ids.NewPosition(seq, ids.LaneFirst).InShared(), Version: 1, Nonce: r.Start.GetNonce()}
}

// Task is the attempt as its worker gets it.
func Task(r *logv1.Record, id ids.TaskID, token string) *yardv1.PolledTask {
	p := r.Policy
	t := &yardv1.PolledTask{
		TaskId: id.String(), Token: token, Type: r.Type, Tasklist: r.Tasklist, Priority: r.Priority, Attempt: 1, MaxAttempts: p.GetMaxAttempts(),
		CreatedAtMs: id.Time().UnixMilli(), TimeoutMs: p.GetStartToCloseMs(), HeartbeatTimeoutMs: p.GetHeartbeatTimeoutMs(), Group: r.Group, Cost: r.Cost,
	}
	if by := r.Expiry.GetFinishWithinMs(); by > 0 {
		t.TimeoutMs = min(t.TimeoutMs, by)
	}
	if len(r.Payload) > 0 {
		t.Payload = &yardv1.Payload{Data: r.Payload, Encoding: yardv1.Encoding(r.PayloadEncoding)}
	}
	if len(r.Trace) > 0 {
		t.Traceparent = telemetry.FormatTraceparent(r.Trace)
	}
	if len(r.Headers) > 0 {
		t.Headers = make(map[string]string, len(r.Headers))
		for _, h := range r.Headers {
			t.Headers[h.Name] = h.Value
		}
	}
	return t
}
