package bench

import (
	"fmt"
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
)

// oneDomain are the workloads that an admin of one domain can run.
var oneDomain = []string{"W1", "W1s", "W2", "W2s", "W3", "W5", "W9", "W12"}

// tenant tells whether the bench is a user of its domain on a sealed cluster. Such a one makes no
// domains and does not see the log.
func (o *Options) tenant() bool {
	owner, sealed := topology.InboxDomain(o.Login.InboxPrefix)
	return o.URL != "" && sealed && owner == domain
}

// checkLogin refuses before the first run what a user of a sealed cluster cannot do: each acts for
// one domain, and operators and services for none.
func (o *Options) checkLogin() error {
	if o.URL == "" {
		return nil
	}
	if _, err := o.Login.Options(); err != nil {
		return fmt.Errorf("login: %w", err)
	}
	owner, sealed := topology.InboxDomain(o.Login.InboxPrefix)
	if !sealed {
		return nil
	}
	if owner != domain {
		return fmt.Errorf("inbox prefix %s: want that of an admin of the domain %s, such as %s of the user admin:%s:ann",
			o.Login.InboxPrefix, domain, topology.UserInbox(domain, "admin-ann"), domain)
	}
	for _, w := range o.Workloads {
		if !slices.Contains(oneDomain, w) {
			return fmt.Errorf("workload %s takes several domains, and a user of a sealed cluster acts for one: name some of %v", w, oneDomain)
		}
	}
	return nil
}

// noDomain says what to do where the domain of a tenant is not there.
func (t *target) noDomain(err error) error {
	if t.tenant() && fault.CodeOf(err) == fault.NotFound {
		return fmt.Errorf("%w; an operator makes the domain: yard domain put %s --retention 30m", err, domain)
	}
	return err
}
