package catalog

import (
	"bytes"
	"context"
	"errors"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// DeleteDomain deletes a domain, of any revision if it is 0, and then all records of it, and returns the domain as it was. Its error is as that of
// Kind.Delete. NOT_FOUND: what was left of the domain is deleted all the same. STALE: nothing is deleted. UNAVAILABLE: repeat it.
func DeleteDomain(ctx context.Context, kv Bucket, name string, revision int64) (*yardv1.Domain, error) {
	if Domains.check("", name) != nil { // a wildcard would be the records of all domains
		return nil, Domains.missing("", name)
	}
	d, err := Domains.Delete(ctx, kv, "", name, revision)
	if err != nil && fault.CodeOf(err) != fault.NotFound {
		return nil, err
	}
	if failed := deleteAll(ctx, kv, name); failed != nil {
		return nil, failed
	}
	return d, err
}

// deleteAll deletes all records of a domain but itself, and but for those that are put meanwhile: they are of a domain that was created again.
func deleteAll(ctx context.Context, kv Bucket, domain string) error {
	var keys []string
	for _, k := range kinds {
		if k != Domains.kind {
			keys = append(keys, k.keysOf(domain))
		}
	}
	all, err := kv.WatchFiltered(ctx, keys, jetstream.IgnoreDeletes(), jetstream.MetaOnly())
	if err != nil {
		return fault.New(fault.Unavailable, "list the settings of domain %s: %v", domain, err)
	}
	defer stop(all)
	for {
		select {
		case <-ctx.Done():
			return fault.New(fault.Unavailable, "delete the settings of domain %s: %v", domain, ctx.Err())
		case e, ok := <-all.Updates():
			if !ok {
				return fault.New(fault.Unavailable, "delete the settings of domain %s: %v", domain, errWatchEnded)
			}
			if e == nil { // the end of what was there
				return nil
			}
			err := kv.Delete(ctx, e.Key(), jetstream.LastRevision(e.Revision()))
			if err != nil && !errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
				return fault.New(fault.Unavailable, "delete %s: %v", e.Key(), err)
			}
		}
	}
}

// put stores a value, in place of one revision unless that is 0.
func put(ctx context.Context, kv Bucket, key, path string, value []byte, replaces int64) (int64, error) {
	if replaces < 0 {
		return 0, fault.At(fault.InvalidArgument, path, "is %d, no revision", replaces)
	}
	var revision uint64
	var err error
	if replaces == 0 {
		revision, err = kv.Put(ctx, key, value)
	} else {
		revision, err = kv.Update(ctx, key, value, uint64(replaces))
	}
	switch {
	case errors.Is(err, jetstream.ErrKeyRevisionMismatch):
		return repeated(ctx, kv, key, path, value, replaces)
	case err != nil:
		return 0, fault.New(fault.Unavailable, "store %s: %v", key, err)
	}
	return int64(revision), nil
}

// repeated reports whether a put that met another revision is the repetition of one that was
// stored and whose answer was lost.
func repeated(ctx context.Context, kv Bucket, key, path string, value []byte, replaces int64) (int64, error) {
	e, err := read(ctx, kv, key)
	switch {
	case err != nil:
		return 0, err
	case e == nil:
		return 0, fault.At(fault.Stale, path, "revision %d is not stored any more: it was deleted", replaces)
	case int64(e.Revision()) > replaces && bytes.Equal(e.Value(), value):
		return int64(e.Revision()), nil
	}
	return 0, fault.At(fault.Stale, path, "revision %d is stored, not %d: read it again", e.Revision(), replaces)
}

// swap stores a value in place of exactly one revision; 0 = there is none.
func swap(ctx context.Context, kv Bucket, key string, value []byte, replaces uint64) error {
	var err error
	if replaces == 0 {
		_, err = kv.Create(ctx, key, value)
	} else {
		_, err = kv.Update(ctx, key, value, replaces)
	}
	switch {
	case errors.Is(err, jetstream.ErrKeyExists), errors.Is(err, jetstream.ErrKeyRevisionMismatch):
		return fault.New(fault.Stale, "another revision of %s is stored, not %d", key, replaces)
	case err != nil:
		return fault.New(fault.Unavailable, "store %s: %v", key, err)
	}
	return nil
}

// remove deletes a key, of which a revision was read, and another one may be wanted.
func remove(ctx context.Context, kv Bucket, key string, read, wanted int64) error {
	if wanted != 0 && wanted != read {
		return fault.At(fault.Stale, "/revision", "revision %d is stored, not %d: read it again", read, wanted)
	}
	err := kv.Delete(ctx, key, jetstream.LastRevision(uint64(read)))
	switch {
	case errors.Is(err, jetstream.ErrKeyRevisionMismatch):
		return fault.At(fault.Stale, "/revision", "revision %d was changed meanwhile: read it again", read)
	case err != nil:
		return fault.New(fault.Unavailable, "delete %s: %v", key, err)
	}
	return nil
}

// read returns the entry of a key; nil = there is none.
func read(ctx context.Context, kv Bucket, key string) (jetstream.KeyValueEntry, error) {
	e, err := kv.Get(ctx, key)
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound):
		return nil, nil
	case err != nil:
		return nil, fault.New(fault.Unavailable, "read %s: %v", key, err)
	}
	return e, nil
}
