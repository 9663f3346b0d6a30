package validate

import (
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
)

// PutDomain judges a domains.put and fills in the default retention, so that
// every reader of the stored domain sees the same.
func PutDomain(req *yardv1.PutDomainRequest) error {
	d := req.Domain
	if d == nil {
		return invalid("/domain", "is missing")
	}
	if err := DomainName("/domain/name", d.Name); err != nil {
		return err
	}
	if d.RetentionMs == 0 {
		d.RetentionMs = ms(RetentionDefault)
	}
	return firstError(
		text("/domain/description", d.Description, DescriptionBytesMax),
		between("/domain/retention_ms", d.RetentionMs, ms(RetentionMin), ms(RetentionMax)),
	)
}

// DomainName judges the name of a domain in a field.
func DomainName(path, s string) error {
	if err := name(path, s); err != nil {
		return err
	}
	if s == topology.ReservedDomain {
		return invalid(path, "%q is reserved", s)
	}
	return nil
}

// SetType judges a types.set.
func SetType(req *yardv1.SetTypeRequest) error {
	t := req.Type
	if t == nil {
		return invalid("/type", "is missing")
	}
	if err := typeName("/type/name", t.Name); err != nil {
		return err
	}
	if t.Retry != nil {
		if err := retry("/type/retry", t.Retry); err != nil {
			return err
		}
	}
	return firstError(
		timeouts("/type", t.StartToCloseMs, t.HeartbeatTimeoutMs),
		between("/type/max_concurrency", t.MaxConcurrency, 0, ConcurrencyMax),
	)
}

// GetType judges a types.get.
func GetType(req *yardv1.GetTypeRequest) error { return typeName("/name", req.Name) }
