package bench

import (
	"fmt"
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
)

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
	var possible []string
	for _, w := range workloads {
		if !w.several {
			possible = append(possible, w.name)
		}
	}
	for _, name := range o.Workloads {
		if !slices.Contains(possible, name) {
			return fmt.Errorf("workload %s takes several domains, and a user of a sealed cluster acts for one: name some of %v", name, possible)
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
