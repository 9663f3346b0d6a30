package catalog

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// storedMax bounds the domains of a rpcv1.StoredTasks.
const storedMax = 1000

// Bounded are the domains with a quota of waiting tasks, or of stored bytes.
type Bounded struct {
	// Quotas are theirs, by domain.
	Quotas map[string]*yardv1.Quota
}

// Bounded returns the domains with a quota of waiting tasks, or of stored bytes; nil if there are none. It is read-only, and another one after a change of
// such a quota.
func (c *Catalog) Bounded() *Bounded {
	if b := c.now.Load().bounded; len(b.Quotas) > 0 {
		return b
	}
	return nil
}

// Nearest returns the reports of the domains that are nearest to their quota, as many as go into one message. It sorts all.
func (b *Bounded) Nearest(all []*rpcv1.DomainStored) []*rpcv1.DomainStored {
	if len(all) <= storedMax {
		return all
	}
	slices.SortFunc(all, func(x, y *rpcv1.DomainStored) int {
		return cmp.Or(cmp.Compare(b.share(y), b.share(x)), strings.Compare(x.Domain, y.Domain))
	})
	return all[:storedMax]
}

// share is how much a domain has of its quota, of that of which it has more.
func (b *Bounded) share(d *rpcv1.DomainStored) float64 {
	quota := b.Quotas[d.Domain]
	return max(share(d.Tasks, quota.GetWaitingTasks()), share(d.Bytes, quota.GetStoredBytes()))
}

func share(n, most int64) float64 {
	if most <= 0 {
		return 0
	}
	return float64(n) / float64(most)
}

// bound takes in the quota of a domain; nil = it has none.
func (s *state) bound(domain string, quota *yardv1.Quota) {
	bounds := quota.GetWaitingTasks() > 0 || quota.GetStoredBytes() > 0
	if was, known := s.bounded.Quotas[domain]; known == bounds && (!bounds || proto.Equal(was, quota)) {
		return
	}
	if !s.ownsBounded {
		s.bounded, s.ownsBounded = &Bounded{maps.Clone(s.bounded.Quotas)}, true
	}
	if bounds {
		s.bounded.Quotas[domain] = quota
	} else {
		delete(s.bounded.Quotas, domain)
	}
}
