package yard

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
)

// Admin manages domains. Its subjects are not those of any domain, so NATS
// permissions can keep tenants off them. It is safe for concurrent use.
type Admin struct{ transport }

// NewAdmin makes an admin client on a connection that the caller keeps and closes.
func NewAdmin(nc *nats.Conn, opts ...ClientOption) (*Admin, error) {
	if nc == nil {
		return nil, fault.New(fault.InvalidArgument, "a client needs a NATS connection")
	}
	return &Admin{transport{nc: nc, timeout: newClientConfig(opts).timeout}}, nil
}

// Domain is a tenant.
type Domain struct {
	// Name is [A-Za-z0-9_-]{1,64}; "admin" is reserved.
	Name string
	// Description is for people; at most 1024 bytes.
	Description string
	// Retention is how long finished tasks are kept, 1 min to 366 days. Default 7 days.
	Retention time.Duration
}

// PutDomain creates or changes a domain and returns it as stored.
func (a *Admin) PutDomain(ctx context.Context, d Domain) (Domain, error) {
	req := &yardv1.PutDomainRequest{Domain: &yardv1.Domain{
		Name: d.Name, Description: d.Description, RetentionMs: milliseconds(d.Retention),
	}}
	resp, err := call[yardv1.PutDomainResponse](ctx, &a.transport, topology.Admin("domains.put"), req, repeatable)
	if err != nil {
		return Domain{}, err
	}
	return domainOf(resp.Domain), nil
}

// GetDomain returns a domain, or NOT_FOUND.
func (a *Admin) GetDomain(ctx context.Context, name string) (Domain, error) {
	resp, err := call[yardv1.GetDomainResponse](ctx, &a.transport, topology.Admin("domains.get"), &yardv1.GetDomainRequest{Name: name}, repeatable)
	if err != nil {
		return Domain{}, err
	}
	return domainOf(resp.Domain), nil
}

// ListDomains returns all domains.
func (a *Admin) ListDomains(ctx context.Context) ([]Domain, error) {
	resp, err := call[yardv1.ListDomainsResponse](ctx, &a.transport, topology.Admin("domains.list"), &yardv1.ListDomainsRequest{}, repeatable)
	if err != nil {
		return nil, err
	}
	domains := make([]Domain, len(resp.Domains))
	for i, d := range resp.Domains {
		domains[i] = domainOf(d)
	}
	return domains, nil
}

func domainOf(w *yardv1.Domain) Domain {
	return Domain{
		Name: w.GetName(), Description: w.GetDescription(),
		Retention: time.Duration(w.GetRetentionMs()) * time.Millisecond,
	}
}
