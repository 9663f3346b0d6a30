package gateway

import (
	"context"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
	"github.com/yardmaster-io/yardmaster/shared/paging"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/validate"
)

// ownWritesWithin is how long a change waits until this frontend itself goes by
// it, so that who made it sees it. Others follow as soon.
const ownWritesWithin = time.Second

// notWritten is why a change was refused, or that it may not have been stored.
func notWritten(err error) error {
	switch fault.CodeOf(err) {
	case fault.InvalidArgument, fault.Stale, fault.NotFound: // a name that is no key, another revision, nothing
		return err
	}
	return fault.New(fault.Unavailable, "the change may not have been stored, repeat it: %v", err).After(awayRetryAfter)
}

// awaitCatalog waits for a change to come by. It has been stored by then, so that
// running out of time is no failure.
func (g *Gateway) awaitCatalog(ctx context.Context, arrived func() bool) {
	ctx, cancel := context.WithTimeout(ctx, ownWritesWithin)
	defer cancel()
	for delay := backoff.New(time.Millisecond, 20*time.Millisecond); !arrived() && ctx.Err() == nil; {
		delay.Sleep(ctx)
	}
}

// putIn stores settings of which every process keeps all in memory, so a domain may have so many; some more where sets
// meet.
func putIn[M catalog.Settings](
	ctx context.Context, g *Gateway, k catalog.Kind[M], domain string, m M, noun validate.Kind, most int,
) (revision int64, err error) {
	if k.Of(g.Catalog, domain, m.GetName()).GetRevision() == 0 && k.Count(g.Catalog, domain) >= most {
		return 0, fault.At(fault.FailedPrecondition, "/"+string(noun)+"/name",
			"the domain has settings of %d %ss, and no more are allowed: delete some", most, noun)
	}
	return put(ctx, g, k, domain, m)
}

// put stores a record, has this frontend go by it, and returns its revision.
func put[M catalog.Settings](ctx context.Context, g *Gateway, k catalog.Kind[M], domain string, m M) (revision int64, err error) {
	revision, err = k.Put(ctx, g.Settings, domain, m)
	if err != nil {
		return 0, notWritten(err)
	}
	g.awaitCatalog(ctx, func() bool { return k.Of(g.Catalog, domain, m.GetName()).GetRevision() >= revision })
	return revision, nil
}

// remove deletes a record, has this frontend go by that, and returns what was deleted. None is the answer if there is no such record.
func remove[M catalog.Settings](ctx context.Context, g *Gateway, k catalog.Kind[M], domain, name string, revision int64, none error) (M, error) {
	m, err := k.Delete(ctx, g.Settings, domain, name, revision)
	switch {
	case fault.CodeOf(err) == fault.NotFound:
		return m, none
	case err != nil:
		return m, notWritten(err)
	}
	g.awaitCatalog(ctx, func() bool {
		left := k.Of(g.Catalog, domain, name).GetRevision()
		return left == 0 || left > m.GetRevision()
	})
	return m, nil
}

// listed is a message that a catalog is sorted by.
type listed interface {
	codec.Message
	GetName() string
}

// pageOf cuts a page out of what is sorted by name, behind the name that is the cursor; next is
// the cursor of the page after it.
func pageOf[M listed](c Call, sorted []M, cursor string, limit int32) (page []M, next string) {
	from := 0
	for from < len(sorted) && sorted[from].GetName() <= cursor {
		from++
	}
	return cut(c, sorted[from:], limit, false, func(last M) string { return last.GetName() })
}

// cut cuts a page off some entries, behind which more may follow; next is the cursor of the page after it.
func cut[M codec.Message](c Call, all []M, limit int32, more bool, cursor func(last M) string) (page []M, next string) {
	page, left := paging.Cut(all, int(limit), paging.BytesMax, func(m M) int { return c.size(m) })
	if n := len(page); n > 0 && (left || more) {
		next = cursor(page[n-1])
	}
	return page, next
}

// size is how many bytes m takes in the answer to c.
func (c *Call) size(m codec.Message) int {
	form := codec.Protobuf
	if c.JSON {
		form = codec.JSON
	}
	data, err := codec.Marshal(form, m)
	if err != nil { // the answer as a whole will say so
		return 0
	}
	return len(data)
}
