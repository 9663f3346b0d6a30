package settings

import (
	"context"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/shared/backoff"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/call"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/validate"
)

// ownWritesWithin is how long a change waits until this frontend itself goes by
// it, so that who made it sees it. Others follow as soon.
const ownWritesWithin = time.Second

// NotWritten is why a change was refused, or that it may not have been stored.
func NotWritten(err error) error {
	switch fault.CodeOf(err) {
	case fault.InvalidArgument, fault.Stale, fault.NotFound: // a name that is no key, another revision, nothing
		return err
	}
	return fault.New(fault.Unavailable, "the change may not have been stored, repeat it: %v", err).After(call.AwayRetryAfter)
}

// AwaitCatalog waits for a change to come by. It has been stored by then, so that
// running out of time is no failure.
func AwaitCatalog(ctx context.Context, arrived func() bool) {
	ctx, cancel := context.WithTimeout(ctx, ownWritesWithin)
	defer cancel()
	for delay := backoff.New(time.Millisecond, 20*time.Millisecond); !arrived() && ctx.Err() == nil; {
		delay.Sleep(ctx)
	}
}

// putIn stores settings of which every process keeps all in memory, so a domain may have so many; some more where sets
// meet.
func putIn[M catalog.Settings](
	ctx context.Context, s *Settings, k catalog.Kind[M], domain string, m M, noun validate.Kind, most int,
) (revision int64, err error) {
	if k.Of(s.Catalog, domain, m.GetName()).GetRevision() == 0 && k.Count(s.Catalog, domain) >= most {
		return 0, fault.At(fault.FailedPrecondition, "/"+string(noun)+"/name",
			"the domain has settings of %d %ss, and no more are allowed: delete some", most, noun)
	}
	return put(ctx, s, k, domain, m)
}

// put stores a record, has this frontend go by it, and returns its revision.
func put[M catalog.Settings](ctx context.Context, s *Settings, k catalog.Kind[M], domain string, m M) (revision int64, err error) {
	revision, err = k.Put(ctx, s.Bucket, domain, m)
	if err != nil {
		return 0, NotWritten(err)
	}
	AwaitCatalog(ctx, func() bool { return k.Of(s.Catalog, domain, m.GetName()).GetRevision() >= revision })
	return revision, nil
}

// remove deletes a record, has this frontend go by that, and returns what was deleted. None is the answer if there is no such record.
func remove[M catalog.Settings](ctx context.Context, s *Settings, k catalog.Kind[M], domain, name string, revision int64, none error) (M, error) {
	m, err := k.Delete(ctx, s.Bucket, domain, name, revision)
	switch {
	case fault.CodeOf(err) == fault.NotFound:
		return m, none
	case err != nil:
		return m, NotWritten(err)
	}
	AwaitCatalog(ctx, func() bool {
		left := k.Of(s.Catalog, domain, name).GetRevision()
		return left == 0 || left > m.GetRevision()
	})
	return m, nil
}
