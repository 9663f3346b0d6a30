package catalog

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
)

// PutDomain creates or replaces a domain, of any revision if d has none, else only that one,
// and returns the new revision. Its error is a *fault.Error: INVALID_ARGUMENT for a name that
// cannot be stored, STALE where another revision is stored, UNAVAILABLE where it may not have been
// stored; a repetition does no harm.
func PutDomain(ctx context.Context, kv jetstream.KeyValue, d *yardv1.Domain) (revision int64, err error) {
	if err := ids.CheckName(d.GetName()); err != nil {
		return 0, fault.At(fault.InvalidArgument, "/domain/name", "%v", err)
	}
	stored := d.CloneVT()
	stored.Revision = 0 // the entry's own tells
	return put(ctx, kv, topology.DomainKey(d.Name), "/domain/revision", stored, d.Revision)
}

// PutType is PutDomain for a task type of a domain.
// A name may hold dots, but none at its ends and no two in a row.
func PutType(ctx context.Context, kv jetstream.KeyValue, domain string, t *yardv1.TaskType) (revision int64, err error) {
	if err := ids.CheckName(domain); err != nil {
		return 0, fault.At(fault.InvalidArgument, "/domain", "%v", err)
	}
	if err := ids.CheckTypeName(t.GetName()); err != nil {
		return 0, fault.At(fault.InvalidArgument, "/type/name", "%v", err)
	}
	if !validKey(t.Name) {
		return 0, fault.At(fault.InvalidArgument, "/type/name", "has '.' at an end or twice in a row, so it cannot have settings")
	}
	stored := t.CloneVT()
	stored.Revision = 0
	return put(ctx, kv, topology.TypeKey(domain, t.Name), "/type/revision", stored, t.Revision)
}

// PutTasklist is PutDomain for the settings of a tasklist of a domain.
func PutTasklist(ctx context.Context, kv jetstream.KeyValue, domain string, l *yardv1.Tasklist) (revision int64, err error) {
	if err := ids.CheckName(domain); err != nil {
		return 0, fault.At(fault.InvalidArgument, "/domain", "%v", err)
	}
	if err := ids.CheckName(l.GetName()); err != nil {
		return 0, fault.At(fault.InvalidArgument, "/tasklist/name", "%v", err)
	}
	stored := l.CloneVT()
	stored.Revision = 0
	return put(ctx, kv, topology.TasklistSettingsKey(domain, l.Name), "/tasklist/revision", stored, l.Revision)
}

// PutLimit is PutDomain for a limit that types of a domain share.
func PutLimit(ctx context.Context, kv jetstream.KeyValue, domain string, l *yardv1.Limit) (revision int64, err error) {
	if err := ids.CheckName(domain); err != nil {
		return 0, fault.At(fault.InvalidArgument, "/domain", "%v", err)
	}
	if err := ids.CheckName(l.GetName()); err != nil {
		return 0, fault.At(fault.InvalidArgument, "/limit/name", "%v", err)
	}
	stored := l.CloneVT()
	stored.Revision = 0
	return put(ctx, kv, topology.LimitKey(domain, l.Name), "/limit/revision", stored, l.Revision)
}

// PutGroup is PutDomain for the settings of a group of tasks. A name is as that of a type.
func PutGroup(ctx context.Context, kv jetstream.KeyValue, domain string, g *yardv1.Group) (revision int64, err error) {
	if err := ids.CheckName(domain); err != nil {
		return 0, fault.At(fault.InvalidArgument, "/domain", "%v", err)
	}
	if err := ids.CheckTypeName(g.GetName()); err != nil {
		return 0, fault.At(fault.InvalidArgument, "/group/name", "%v", err)
	}
	if !validKey(g.Name) {
		return 0, fault.At(fault.InvalidArgument, "/group/name", "has '.' at an end or twice in a row, so it cannot have settings")
	}
	stored := g.CloneVT()
	stored.Revision = 0
	return put(ctx, kv, topology.GroupKey(domain, g.Name), "/group/revision", stored, g.Revision)
}

// GetDomain reads a domain from the bucket itself: it sees what was put before.
// Its error is a *fault.Error, NOT_FOUND where there is no such domain.
func GetDomain(ctx context.Context, kv jetstream.KeyValue, name string) (*yardv1.Domain, error) {
	d := &yardv1.Domain{}
	if !validKey(name) {
		return nil, fault.New(fault.NotFound, "no domain %q", name)
	}
	revision, err := get(ctx, kv, topology.DomainKey(name), d)
	if err != nil {
		return nil, named(err, "no domain %q", name)
	}
	d.Revision = revision
	return d, nil
}

// GetType is GetDomain for a task type: NOT_FOUND where it has no settings.
func GetType(ctx context.Context, kv jetstream.KeyValue, domain, name string) (*yardv1.TaskType, error) {
	t := &yardv1.TaskType{}
	if !validKey(domain) || !validKey(name) {
		return nil, fault.New(fault.NotFound, "no type %q in domain %q", name, domain)
	}
	revision, err := get(ctx, kv, topology.TypeKey(domain, name), t)
	if err != nil {
		return nil, named(err, "no type %q in domain %q", name, domain)
	}
	t.Revision = revision
	return t, nil
}

// GetTasklist is GetDomain for a tasklist: NOT_FOUND where it has no settings.
func GetTasklist(ctx context.Context, kv jetstream.KeyValue, domain, name string) (*yardv1.Tasklist, error) {
	l := &yardv1.Tasklist{}
	if ids.CheckName(domain) != nil || ids.CheckName(name) != nil {
		return nil, fault.New(fault.NotFound, "no settings of tasklist %q in domain %q", name, domain)
	}
	revision, err := get(ctx, kv, topology.TasklistSettingsKey(domain, name), l)
	if err != nil {
		return nil, named(err, "no settings of tasklist %q in domain %q", name, domain)
	}
	l.Revision = revision
	return l, nil
}

// GetLimit is GetDomain for a limit that types share.
func GetLimit(ctx context.Context, kv jetstream.KeyValue, domain, name string) (*yardv1.Limit, error) {
	l := &yardv1.Limit{}
	if ids.CheckName(domain) != nil || ids.CheckName(name) != nil {
		return nil, fault.New(fault.NotFound, "no limit %q in domain %q", name, domain)
	}
	revision, err := get(ctx, kv, topology.LimitKey(domain, name), l)
	if err != nil {
		return nil, named(err, "no limit %q in domain %q", name, domain)
	}
	l.Revision = revision
	return l, nil
}

// GetGroup is GetDomain for the settings of a group: NOT_FOUND where it has none.
func GetGroup(ctx context.Context, kv jetstream.KeyValue, domain, name string) (*yardv1.Group, error) {
	g := &yardv1.Group{}
	if !validKey(domain) || !validKey(name) {
		return nil, fault.New(fault.NotFound, "no settings of group %q in domain %q", name, domain)
	}
	revision, err := get(ctx, kv, topology.GroupKey(domain, name), g)
	if err != nil {
		return nil, named(err, "no settings of group %q in domain %q", name, domain)
	}
	g.Revision = revision
	return g, nil
}

// PutPause stores a pause or a drain under its key, in place of one that is there.
func PutPause(ctx context.Context, kv jetstream.KeyValue, key string, p *yardv1.Pause) error {
	_, err := put(ctx, kv, key, "", p, 0)
	return err
}

// DeletePause deletes the pause under a key and returns it as it was: NOT_FOUND where there is none, STALE where another
// one was put meanwhile.
func DeletePause(ctx context.Context, kv jetstream.KeyValue, key string) (*yardv1.Pause, error) {
	p := &yardv1.Pause{}
	revision, err := get(ctx, kv, key, p)
	if err != nil {
		return nil, named(err, "it is not paused")
	}
	return p, remove(ctx, kv, key, revision, 0)
}

// DeletePauseOver deletes the pause under a key if it is over at an instant, Unix ms. One that was put meanwhile stays.
func DeletePauseOver(ctx context.Context, kv jetstream.KeyValue, key string, nowMS int64) error {
	p := &yardv1.Pause{}
	revision, err := get(ctx, kv, key, p)
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound) || err == nil && Paused(p, nowMS):
		return nil
	case err == nil:
		err = remove(ctx, kv, key, revision, 0)
	}
	if fault.CodeOf(err) == fault.Stale {
		return nil
	}
	return err
}

// DeleteDomain deletes a domain, of any revision if it is 0, and then its task types, the settings
// of its tasklists, its limits and the settings of its groups, and returns the domain as it was. Its error is a *fault.Error: NOT_FOUND where
// there is none, and what was left of it is deleted all the same; STALE where another revision is stored, and
// nothing is deleted; UNAVAILABLE where not all may have been deleted: repeat it.
func DeleteDomain(ctx context.Context, kv jetstream.KeyValue, name string, revision int64) (*yardv1.Domain, error) {
	if ids.CheckName(name) != nil { // a wildcard would be the types of all domains
		return nil, fault.New(fault.NotFound, "no domain %q", name)
	}
	d, err := GetDomain(ctx, kv, name)
	if err == nil {
		err = remove(ctx, kv, topology.DomainKey(name), d.Revision, revision)
	}
	if err != nil && fault.CodeOf(err) != fault.NotFound {
		return nil, err
	}
	if failed := deleteSettings(ctx, kv, name); failed != nil {
		return nil, failed
	}
	return d, err
}

// DeleteType deletes the settings of a task type as DeleteDomain does a domain.
func DeleteType(ctx context.Context, kv jetstream.KeyValue, domain, name string, revision int64) (*yardv1.TaskType, error) {
	t, err := GetType(ctx, kv, domain, name)
	if err != nil {
		return nil, err
	}
	if err := remove(ctx, kv, topology.TypeKey(domain, name), t.Revision, revision); err != nil {
		return nil, err
	}
	return t, nil
}

// DeleteTasklist deletes the settings of a tasklist as DeleteDomain does a domain, and its scale.
func DeleteTasklist(ctx context.Context, kv jetstream.KeyValue, domain, name string, revision int64) (*yardv1.Tasklist, error) {
	l, err := GetTasklist(ctx, kv, domain, name)
	if err != nil {
		return nil, err
	}
	if err := remove(ctx, kv, topology.TasklistSettingsKey(domain, name), l.Revision, revision); err != nil {
		return nil, err
	}
	deleteScaleOf(ctx, kv, domain, name)
	return l, nil
}

// DeleteLimit deletes a limit that types share as DeleteDomain does a domain.
func DeleteLimit(ctx context.Context, kv jetstream.KeyValue, domain, name string, revision int64) (*yardv1.Limit, error) {
	l, err := GetLimit(ctx, kv, domain, name)
	if err != nil {
		return nil, err
	}
	if err := remove(ctx, kv, topology.LimitKey(domain, name), l.Revision, revision); err != nil {
		return nil, err
	}
	return l, nil
}

// DeleteGroup deletes the settings of a group as DeleteDomain does a domain.
func DeleteGroup(ctx context.Context, kv jetstream.KeyValue, domain, name string, revision int64) (*yardv1.Group, error) {
	g, err := GetGroup(ctx, kv, domain, name)
	if err != nil {
		return nil, err
	}
	if err := remove(ctx, kv, topology.GroupKey(domain, name), g.Revision, revision); err != nil {
		return nil, err
	}
	return g, nil
}

// deleteSettings deletes the types, tasklists, limits, groups, pauses, drains, scales and drained workers of a domain, but for what is set meanwhile: that is of
// a domain that was created again.
func deleteSettings(ctx context.Context, kv jetstream.KeyValue, domain string) error {
	keys := slices.Concat([]string{
		topology.TypeKeysOf(domain), topology.TasklistKeysOf(domain), topology.LimitKeysOf(domain), topology.GroupKeysOf(domain), topology.ScaleKeysOf(domain), topology.WorkersKey(domain),
	}, topology.PauseKeysOf(domain))
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

// put stores m under key, in place of one revision unless that is 0.
func put(ctx context.Context, kv jetstream.KeyValue, key, path string, m codec.Message, replaces int64) (int64, error) {
	value, err := codec.Marshal(codec.JSON, m)
	if err != nil {
		return 0, err
	}
	if replaces < 0 {
		return 0, fault.At(fault.InvalidArgument, path, "is %d, no revision", replaces)
	}
	var revision uint64
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

// repeated tells whether a put that met another revision is the repetition of one that was
// stored and whose answer was lost.
func repeated(ctx context.Context, kv jetstream.KeyValue, key, path string, value []byte, replaces int64) (int64, error) {
	e, err := kv.Get(ctx, key)
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound):
		return 0, fault.At(fault.Stale, path, "revision %d is not stored any more: it was deleted", replaces)
	case err != nil:
		return 0, fault.New(fault.Unavailable, "read %s: %v", key, err)
	case int64(e.Revision()) > replaces && bytes.Equal(e.Value(), value):
		return int64(e.Revision()), nil
	}
	return 0, fault.At(fault.Stale, path, "revision %d is stored, not %d: read it again", e.Revision(), replaces)
}

// remove deletes key, of which a revision was read, and another one may be wanted.
func remove(ctx context.Context, kv jetstream.KeyValue, key string, read, wanted int64) error {
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

// get returns jetstream.ErrKeyNotFound as it is, and else a *fault.Error.
func get(ctx context.Context, kv jetstream.KeyValue, key string, m codec.Message) (revision int64, err error) {
	e, err := kv.Get(ctx, key)
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound), errors.Is(err, jetstream.ErrInvalidKey):
		return 0, jetstream.ErrKeyNotFound
	case err != nil:
		return 0, fault.New(fault.Unavailable, "read %s: %v", key, err)
	}
	return int64(e.Revision()), codec.Unmarshal(codec.JSON, e.Value(), m)
}

// named puts words to a missing key.
func named(err error, format string, args ...any) error {
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return fault.New(fault.NotFound, format, args...)
	}
	return err
}

// validKey tells whether a name can be part of a key: dots separate tokens, and
// none may be empty.
func validKey(name string) bool {
	return name != "" && !strings.HasPrefix(name, ".") && !strings.HasSuffix(name, ".") && !strings.Contains(name, "..")
}
