// Package audit asks what operators did: who paused, drained, purged, redrove, or changed settings, and when.
//
// Owns: the Go form of the entries, their calls, and the name of the caller. Never does: write entries; the engine does.
//
// On failure: a call returns a *fault.Error, matched by code as those of package yard are. It is safe to repeat, and is repeated as the Client's are.
//
//	entries, err := audit.List(ctx, client, 20)
package audit

import (
	"context"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/contracts/yard/internal/caller"
)

// Entry is one request that changed settings, or tasks that others submitted.
type Entry struct {
	// At is when the request came.
	At time.Time
	// Verb is the endpoint, such as tasklists.pause.
	Verb string
	// User is the login on a cluster with logins. By is the name that the client gave (By). Either may be empty.
	User, By string
	// Request is the request as JSON, without payloads, cut after 1000 bytes.
	Request string
	// Code is that of the answer if the request may have been carried out in part, or not at all: UNKNOWN, UNAVAILABLE or INTERNAL. Empty: it was carried out.
	Code fault.Code
}

// By returns a context whose calls are recorded with the name of a person or program, 128 bytes at most.
func By(ctx context.Context, name string) context.Context { return caller.With(ctx, name) }

// List returns what was done in the client's domain, the last ones first: 1 to 500 entries at most, 0 = 100.
func List(ctx context.Context, c *yard.Client, limit int) ([]Entry, error) {
	return entries(yard.Call[yardv1.ListAuditResponse](ctx, c, "audit.list", &yardv1.ListAuditRequest{Limit: int32(limit)}))
}

// ListCluster returns what was done to domains, the last ones first: 1 to 500 entries at most, 0 = 100.
func ListCluster(ctx context.Context, a *yard.Admin, limit int) ([]Entry, error) {
	return entries(yard.CallAdmin[yardv1.ListAuditResponse](ctx, a, "domains.audit", &yardv1.ListAuditRequest{Limit: int32(limit)}))
}

func entries(resp *yardv1.ListAuditResponse, err error) (all []Entry, _ error) {
	for _, e := range resp.GetEntries() {
		all = append(all, Entry{At: time.UnixMilli(e.AtMs), Verb: e.Verb, User: e.User, By: e.By, Request: e.Request, Code: fault.Code(e.Code)})
	}
	return all, err
}
