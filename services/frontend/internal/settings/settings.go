// Package settings is the verbs about what is stored of domains, tasklists, types, limits and groups, and about their pauses and drains.
//
// Owns: how a change is checked against the other settings, stored, and seen by who made it.
//
// Never does: apply settings. Each service reads the catalog for itself.
//
// On failure: a change that may not have been stored is UNAVAILABLE, and safe to repeat.
package settings

import (
	"context"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/owners"
)

// Deps is what Settings need.
type Deps struct {
	owners.Env
	Bucket catalog.Bucket
	// Use is what a domain uses of its quota.
	Use func(*yardv1.Domain) *yardv1.Quota
	// AnySchedule names a schedule of a domain; "" = it has none.
	AnySchedule func(ctx context.Context, domain string) (string, error)
}

// Settings carries out the verbs about settings.
type Settings struct{ Deps }

// New makes Settings.
func New(d Deps) *Settings { return &Settings{d} }
