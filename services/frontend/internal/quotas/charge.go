package quotas

import (
	"github.com/yardmaster-io/yardmaster/contracts/fault"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/quota"
)

// Charge is what one request asks of the quota of its domain. All parts of the request share it, so they are taken or refused together. A nil Charge is of a
// domain without a quota.
type Charge struct {
	by     *Quotas
	domain string

	// The lock of by guards these: how much the request asks for, whether it was taken, and why it was refused.
	use     quota.Use
	taken   bool
	refused error
}

// Charge is that of a request with so many tasks and bytes. It counts nothing yet.
func (q *Quotas) Charge(domain string, tasks, bytes int) *Charge {
	if !q.has(domain) {
		return nil
	}
	return &Charge{by: q, domain: domain, use: quota.Use{Tasks: int64(tasks), Bytes: int64(bytes)}}
}

// Take counts the request, once, or refuses it, then for good.
func (c *Charge) Take() error {
	if c == nil {
		return nil
	}
	c.by.mu.Lock()
	defer c.by.mu.Unlock()
	if c.taken || c.refused != nil {
		return c.refused
	}
	may := mayUse(c.by.catalog.Domain(c.domain))
	if wait := c.by.book.Take(c.domain, may, c.use, c.by.now()); wait > 0 {
		c.refused = overQuota("submits more than its quota of %d tasks/s, %d bytes/s (0: any number): nothing was stored; repeat the request later", may.Tasks, may.Bytes).After(wait)
	}
	c.taken = c.refused == nil
	return c.refused
}

// Return takes so many of the tasks out of the charge: this request does not store them.
func (c *Charge) Return(tasks int) {
	if c == nil {
		return
	}
	c.by.mu.Lock()
	defer c.by.mu.Unlock()
	back := quota.Use{Tasks: min(int64(tasks), c.use.Tasks)}
	if back.Tasks > 0 {
		back.Bytes = c.use.Bytes * back.Tasks / c.use.Tasks
	}
	c.use = quota.Use{Tasks: c.use.Tasks - back.Tasks, Bytes: c.use.Bytes - back.Bytes}
	if c.taken {
		c.by.book.Return(c.domain, back, c.by.now())
	}
}

// Failed is Return if err refuses the tasks and does not leave open whether they are stored.
func (c *Charge) Failed(tasks int, err error) {
	if err != nil && fault.CodeOf(err) != fault.Unknown {
		c.Return(tasks)
	}
}
