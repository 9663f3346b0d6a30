package natsgate

import (
	"context"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// Catalog is the gateway's view of the config bucket: it reads what is watched
// and writes to the bucket (gateway.Catalog and gateway.Registry).
type Catalog struct {
	*catalog.Catalog
	kv jetstream.KeyValue
}

// WatchCatalog returns once all that is stored has been read; it follows changes
// until ctx ends.
func WatchCatalog(ctx context.Context, kv jetstream.KeyValue) (*Catalog, error) {
	c, err := catalog.Watch(ctx, kv, func(string) {})
	if err != nil {
		return nil, err
	}
	return &Catalog{Catalog: c, kv: kv}, nil
}

// HasDomain tells whether there is such a domain.
func (c *Catalog) HasDomain(name string) bool {
	_, ok := c.Catalog.Domain(name)
	return ok
}

// Domain returns nil where there is none.
func (c *Catalog) Domain(name string) *yardv1.Domain {
	d, _ := c.Catalog.Domain(name)
	return d
}

// Type returns nil where the type has no settings.
func (c *Catalog) Type(domain, name string) *yardv1.TaskType {
	t, _ := c.Catalog.Type(domain, name)
	return t
}

// Tasklist returns nil where the tasklist has no settings.
func (c *Catalog) Tasklist(domain, name string) *yardv1.Tasklist {
	l, _ := c.Catalog.Tasklist(domain, name)
	return l
}

// Limit returns nil where there is none.
func (c *Catalog) Limit(domain, name string) *yardv1.Limit {
	l, _ := c.Catalog.Limit(domain, name)
	return l
}

// PutDomain stores a domain.
func (c *Catalog) PutDomain(ctx context.Context, d *yardv1.Domain) (revision int64, err error) {
	return catalog.PutDomain(ctx, c.kv, d)
}

// PutType stores a task type.
func (c *Catalog) PutType(ctx context.Context, domain string, t *yardv1.TaskType) (revision int64, err error) {
	return catalog.PutType(ctx, c.kv, domain, t)
}

// PutTasklist stores the settings of a tasklist.
func (c *Catalog) PutTasklist(ctx context.Context, domain string, l *yardv1.Tasklist) (revision int64, err error) {
	return catalog.PutTasklist(ctx, c.kv, domain, l)
}

// Group returns nil where it has no settings.
func (c *Catalog) Group(domain, name string) *yardv1.Group {
	g, _ := c.Catalog.Group(domain, name)
	return g
}

// PutLimit stores a limit that types share.
func (c *Catalog) PutLimit(ctx context.Context, domain string, l *yardv1.Limit) (revision int64, err error) {
	return catalog.PutLimit(ctx, c.kv, domain, l)
}

// PutGroup stores the settings of a group.
func (c *Catalog) PutGroup(ctx context.Context, domain string, g *yardv1.Group) (revision int64, err error) {
	return catalog.PutGroup(ctx, c.kv, domain, g)
}

// GetLimit reads a limit from the bucket itself.
func (c *Catalog) GetLimit(ctx context.Context, domain, name string) (*yardv1.Limit, error) {
	return catalog.GetLimit(ctx, c.kv, domain, name)
}

// PutScale stores over how many partitions a tasklist is spread.
func (c *Catalog) PutScale(ctx context.Context, domain, tasklist string, partitions int, replaces int64) error {
	return catalog.PutScale(ctx, c.kv, domain, tasklist, partitions, replaces)
}

// DeleteScale deletes that.
func (c *Catalog) DeleteScale(ctx context.Context, domain, tasklist string, revision int64) error {
	return catalog.DeleteScale(ctx, c.kv, domain, tasklist, revision)
}

// PutPause stores a pause.
func (c *Catalog) PutPause(ctx context.Context, key string, p *yardv1.Pause) error {
	return catalog.PutPause(ctx, c.kv, key, p)
}

// DeletePause deletes a pause.
func (c *Catalog) DeletePause(ctx context.Context, key string) (*yardv1.Pause, error) {
	return catalog.DeletePause(ctx, c.kv, key)
}

// DeletePauseOver deletes a pause if it is over.
func (c *Catalog) DeletePauseOver(ctx context.Context, key string, nowMS int64) error {
	return catalog.DeletePauseOver(ctx, c.kv, key, nowMS)
}

// ChangeDrainedWorkers changes which workers of a domain are drained.
func (c *Catalog) ChangeDrainedWorkers(ctx context.Context, domain string, change func(all map[string]*yardv1.WorkerDrain) (bool, error)) error {
	return catalog.ChangeDrainedWorkers(ctx, c.kv, domain, change)
}

// DeleteDomain deletes a domain, its types, tasklists, limits, groups and pauses.
func (c *Catalog) DeleteDomain(ctx context.Context, name string, revision int64) (*yardv1.Domain, error) {
	return catalog.DeleteDomain(ctx, c.kv, name, revision)
}

// DeleteType deletes a task type.
func (c *Catalog) DeleteType(ctx context.Context, domain, name string, revision int64) (*yardv1.TaskType, error) {
	return catalog.DeleteType(ctx, c.kv, domain, name, revision)
}

// DeleteTasklist deletes the settings of a tasklist.
func (c *Catalog) DeleteTasklist(ctx context.Context, domain, name string, revision int64) (*yardv1.Tasklist, error) {
	return catalog.DeleteTasklist(ctx, c.kv, domain, name, revision)
}

// DeleteGroup deletes the settings of a group.
func (c *Catalog) DeleteGroup(ctx context.Context, domain, name string, revision int64) (*yardv1.Group, error) {
	return catalog.DeleteGroup(ctx, c.kv, domain, name, revision)
}

// DeleteLimit deletes a limit that types share.
func (c *Catalog) DeleteLimit(ctx context.Context, domain, name string, revision int64) (*yardv1.Limit, error) {
	return catalog.DeleteLimit(ctx, c.kv, domain, name, revision)
}
