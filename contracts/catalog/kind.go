package catalog

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// The kinds. A new one is declared here, and nowhere else: a frontend may write it, all watch it, and it is deleted with its domain.
var (
	Domains   = declare[*yardv1.Domain](kind{noun: "domain", prefix: "domain.", clusterWide: true})
	Types     = declare[*yardv1.TaskType](kind{noun: "type", prefix: "type.", dotted: true})
	Tasklists = declare[*yardv1.Tasklist](kind{noun: "tasklist", prefix: "tasklist."})
	Limits    = declare[*yardv1.Limit](kind{noun: "limit", prefix: "limit."})
	Groups    = declare[*yardv1.Group](kind{noun: "group", prefix: "group.", dotted: true})
	// Pauses stop starts, Drains stop submits.
	Pauses = declareStops("pause")
	Drains = declareStops("drain")
	// Scales are over how many partitions the engine itself has spread tasklists. They are records of their own, so that a put of the settings keeps them.
	Scales = declare[*rpcv1.TasklistScale](kind{noun: "scale", prefix: "scale."})
	// Workers are the drained workers of each domain. They are one record, since worker ids are new for each run and a deleted key leaves a marker
	// behind for good.
	Workers = declare[*rpcv1.DrainedWorkers](kind{noun: "workers", prefix: "workers.", clusterWide: true})
)

// Bucket is the config bucket.
type Bucket = jetstream.KeyValue

// Kind is a kind of records of the config bucket. Each record is a message in JSON, under a key of its own. The domain of a record of a cluster-wide
// kind is "", and its name the name of a domain. If the message has a field `revision`, it is the revision of the key; 0 = any.
type Kind[M message] struct{ *kind }

type message interface {
	codec.Message
	proto.Message
}

// Settings are records that people put: they have names and revisions.
type Settings interface {
	message
	GetName() string
	GetRevision() int64
}

// kind is what is declared of a Kind, and what its message says.
type kind struct {
	// noun is what a record is called. A request holds it in a field of this name.
	noun string
	// prefix begins the keys.
	prefix string
	// dotted: a name may hold dots.
	dotted bool
	// clusterWide: there is one record at most for each domain.
	clusterWide bool

	index          int
	empty          message
	name, revision protoreflect.FieldDescriptor // nil if the message has no such field
}

// kinds are all that are declared.
var kinds []*kind

func declare[M message](k kind) Kind[M] {
	var empty M
	fields := empty.ProtoReflect().Descriptor().Fields()
	k.index, k.empty, k.name, k.revision = len(kinds), empty, fields.ByName("name"), fields.ByName("revision")
	kinds = append(kinds, &k)
	return Kind[M]{&k}
}

// AllKeys filters the keys of all kinds, each filter those of one kind.
func AllKeys() (filters []string) {
	for _, k := range kinds {
		filters = append(filters, k.Keys())
	}
	return filters
}

// Keys filters all keys of the kind.
func (k *kind) Keys() string {
	if k.clusterWide {
		return k.prefix + "*"
	}
	return k.keysOf("*")
}

// keysOf filters the keys of a domain.
func (k *kind) keysOf(domain string) string {
	switch {
	case k.clusterWide:
		return k.prefix + domain
	case k.dotted:
		return k.prefix + domain + ".>"
	}
	return k.prefix + domain + ".*"
}

// Key is the key of a record.
func (k *kind) Key(domain, name string) string {
	if k.clusterWide {
		return k.prefix + name
	}
	return k.prefix + domain + "." + name
}

// OfKey is the inverse of Key; ok is false if the key is of another kind.
func (k *kind) OfKey(key string) (domain, name string, ok bool) {
	rest, ok := strings.CutPrefix(key, k.prefix)
	if !ok {
		return "", "", false
	}
	if k.clusterWide {
		return "", rest, rest != "" && !strings.Contains(rest, ".")
	}
	domain, name, ok = strings.Cut(rest, ".")
	return domain, name, ok && domain != "" && name != "" && (k.dotted || !strings.Contains(name, "."))
}

// ofKey is whose record a key holds; nil = of no kind.
func ofKey(key string) (k *kind, domain, name string) {
	for _, k := range kinds {
		if domain, name, ok := k.OfKey(key); ok {
			return k, domain, name
		}
	}
	return nil, "", ""
}

// concerns is the domain that a record is about.
func (k *kind) concerns(domain, name string) string {
	if k.clusterWide {
		return name
	}
	return domain
}

// field is the path of a field of a record in a request.
func (k *kind) field(name string) string {
	if k.name == nil {
		return "/" + name
	}
	return "/" + k.noun + "/" + name
}

// check refuses names that cannot be part of a key.
func (k *kind) check(domain, name string) error {
	if err := ids.CheckName(domain); err != nil && !k.clusterWide {
		return fault.At(fault.InvalidArgument, "/domain", "%v", err)
	}
	check := ids.CheckName
	if k.dotted {
		check = ids.CheckTypeName
	}
	if err := check(name); err != nil {
		return fault.At(fault.InvalidArgument, k.field("name"), "%v", err)
	}
	return nil
}

// missing says that there is no such record.
func (k *kind) missing(domain, name string) error {
	if k.clusterWide {
		return fault.New(fault.NotFound, "no %s %q", k.noun, name)
	}
	return fault.New(fault.NotFound, "no %s %q in domain %q", k.noun, name, domain)
}

// decode reads a record.
func (k *kind) decode(value []byte, revision uint64) (message, error) {
	m := k.empty.ProtoReflect().New().Interface().(message)
	if err := codec.Unmarshal(codec.JSON, value, m); err != nil {
		return nil, err
	}
	k.setRevision(m, int64(revision))
	return m, nil
}

func (k *kind) setRevision(m message, revision int64) {
	if k.revision != nil {
		m.ProtoReflect().Set(k.revision, protoreflect.ValueOfInt64(revision))
	}
}

func (k *kind) revisionOf(m message) int64 {
	if k.revision == nil {
		return 0
	}
	return m.ProtoReflect().Get(k.revision).Int()
}

// encode writes a record, without its revision: the key has it.
func (k *kind) encode(m message) ([]byte, error) {
	m = proto.Clone(m).(message)
	k.setRevision(m, 0)
	return codec.Marshal(codec.JSON, m)
}

// Of returns what a catalog has of a record; nil = there is none. It is read-only.
func (k Kind[M]) Of(c *Catalog, domain, name string) M {
	m, _ := c.now.Load().tables[k.index][domain][name].(M)
	return m
}

// Count is how many records of a domain there are.
func (k Kind[M]) Count(c *Catalog, domain string) int {
	return len(c.now.Load().tables[k.index][domain])
}

// Each are the records of a domain by name, in no order. They are read-only.
func (k Kind[M]) Each(c *Catalog, domain string) iter.Seq2[string, M] {
	table := c.now.Load().tables[k.index][domain]
	return func(yield func(string, M) bool) {
		for name, m := range table {
			if !yield(name, m.(M)) {
				return
			}
		}
	}
}

// All are the records of a domain, sorted by name. They are read-only, the slice is not.
func (k Kind[M]) All(c *Catalog, domain string) []M {
	table := c.now.Load().tables[k.index][domain]
	all := make([]M, 0, len(table))
	for _, name := range slices.Sorted(maps.Keys(table)) {
		all = append(all, table[name].(M))
	}
	return all
}

// InDomains are the domains that have records, in no order.
func (k Kind[M]) InDomains(c *Catalog) iter.Seq[string] {
	return maps.Keys(c.now.Load().tables[k.index])
}

// Revision is that of the last change of a record of the kind.
func (k Kind[M]) Revision(c *Catalog) uint64 { return c.now.Load().revisions[k.index] }

// Get reads a record from the bucket itself: it sees what was put before. Its error is a *fault.Error, NOT_FOUND if there is no such record.
func (k Kind[M]) Get(ctx context.Context, kv Bucket, domain, name string) (m M, err error) {
	m, _, err = k.get(ctx, kv, domain, name)
	return m, err
}

func (k Kind[M]) get(ctx context.Context, kv Bucket, domain, name string) (m M, revision uint64, err error) {
	if k.check(domain, name) != nil {
		return m, 0, k.missing(domain, name)
	}
	e, err := read(ctx, kv, k.Key(domain, name))
	if err != nil {
		return m, 0, err
	}
	if e == nil {
		return m, 0, k.missing(domain, name)
	}
	one, err := k.decode(e.Value(), e.Revision())
	if err != nil {
		return m, 0, err
	}
	return one.(M), e.Revision(), nil
}

// Put creates or replaces the record of m's name, of any revision if m has none, else only that one, and returns the new revision. Its error is a
// *fault.Error: INVALID_ARGUMENT for a name that cannot be stored, STALE if another revision is stored, UNAVAILABLE if it may not have been stored; a
// repetition does no harm.
func (k Kind[M]) Put(ctx context.Context, kv Bucket, domain string, m M) (revision int64, err error) {
	return k.PutAs(ctx, kv, domain, m.ProtoReflect().Get(k.name).String(), m)
}

// PutAs is Put for messages without a name.
func (k Kind[M]) PutAs(ctx context.Context, kv Bucket, domain, name string, m M) (revision int64, err error) {
	if err := k.check(domain, name); err != nil {
		return 0, err
	}
	value, err := k.encode(m)
	if err != nil {
		return 0, err
	}
	return put(ctx, kv, k.Key(domain, name), k.field("revision"), value, k.revisionOf(m))
}

// Swap stores a record in place of exactly one revision, 0 = there is none. Its error is a *fault.Error: STALE if another revision is stored, UNAVAILABLE
// if it may not have been stored.
func (k Kind[M]) Swap(ctx context.Context, kv Bucket, domain, name string, m M, replaces int64) error {
	if err := k.check(domain, name); err != nil {
		return err
	}
	value, err := k.encode(m)
	if err != nil {
		return err
	}
	return swap(ctx, kv, k.Key(domain, name), value, uint64(replaces))
}

// Delete deletes a record, of any revision if it is 0, and returns it as it was. Its error is a *fault.Error: NOT_FOUND if there is none, STALE if another
// revision is stored, UNAVAILABLE if it may not have been deleted.
func (k Kind[M]) Delete(ctx context.Context, kv Bucket, domain, name string, revision int64) (M, error) {
	return k.deleteIf(ctx, kv, domain, name, revision, func(M) bool { return true })
}

func (k Kind[M]) deleteIf(ctx context.Context, kv Bucket, domain, name string, revision int64, wanted func(M) bool) (M, error) {
	m, stored, err := k.get(ctx, kv, domain, name)
	if err == nil && wanted(m) {
		err = remove(ctx, kv, k.Key(domain, name), int64(stored), revision)
	}
	if err != nil {
		var none M
		return none, err
	}
	return m, nil
}
