package catalog

import (
	"context"
	"errors"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
)

// PutDomain creates or replaces a domain. Its error is a *fault.Error:
// INVALID_ARGUMENT for a name that cannot be stored, UNAVAILABLE where it may not
// have been stored; a repetition does no harm.
func PutDomain(ctx context.Context, kv jetstream.KeyValue, d *yardv1.Domain) error {
	if err := ids.CheckName(d.GetName()); err != nil {
		return fault.At(fault.InvalidArgument, "/domain/name", "%v", err)
	}
	return put(ctx, kv, topology.DomainKey(d.Name), d)
}

// PutType creates or replaces a task type of a domain. Its error is PutDomain's.
// A name may hold dots, but none at its ends and no two in a row.
func PutType(ctx context.Context, kv jetstream.KeyValue, domain string, t *yardv1.TaskType) error {
	if err := ids.CheckName(domain); err != nil {
		return fault.At(fault.InvalidArgument, "/domain", "%v", err)
	}
	if err := ids.CheckTypeName(t.GetName()); err != nil {
		return fault.At(fault.InvalidArgument, "/type/name", "%v", err)
	}
	if !validKey(t.Name) {
		return fault.At(fault.InvalidArgument, "/type/name", "has '.' at an end or twice in a row, so it cannot have settings")
	}
	return put(ctx, kv, topology.TypeKey(domain, t.Name), t)
}

// GetDomain reads a domain from the bucket itself: it sees what was put before.
// Its error is a *fault.Error, NOT_FOUND where there is no such domain.
func GetDomain(ctx context.Context, kv jetstream.KeyValue, name string) (*yardv1.Domain, error) {
	d := &yardv1.Domain{}
	if !validKey(name) {
		return nil, fault.New(fault.NotFound, "no domain %q", name)
	}
	if err := get(ctx, kv, topology.DomainKey(name), d); err != nil {
		return nil, named(err, "no domain %q", name)
	}
	return d, nil
}

// GetType is GetDomain for a task type: NOT_FOUND where it has no settings.
func GetType(ctx context.Context, kv jetstream.KeyValue, domain, name string) (*yardv1.TaskType, error) {
	t := &yardv1.TaskType{}
	if !validKey(domain) || !validKey(name) {
		return nil, fault.New(fault.NotFound, "no type %q in domain %q", name, domain)
	}
	if err := get(ctx, kv, topology.TypeKey(domain, name), t); err != nil {
		return nil, named(err, "no type %q in domain %q", name, domain)
	}
	return t, nil
}

func put(ctx context.Context, kv jetstream.KeyValue, key string, m codec.Message) error {
	value, err := codec.Marshal(codec.JSON, m)
	if err != nil {
		return err
	}
	if _, err := kv.Put(ctx, key, value); err != nil {
		return fault.New(fault.Unavailable, "store %s: %v", key, err)
	}
	return nil
}

// get returns jetstream.ErrKeyNotFound as it is, and else a *fault.Error.
func get(ctx context.Context, kv jetstream.KeyValue, key string, m codec.Message) error {
	e, err := kv.Get(ctx, key)
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound), errors.Is(err, jetstream.ErrInvalidKey):
		return jetstream.ErrKeyNotFound
	case err != nil:
		return fault.New(fault.Unavailable, "read %s: %v", key, err)
	}
	return codec.Unmarshal(codec.JSON, e.Value(), m)
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
