package quotas

import (
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/signals"

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
	c.refused = c.by.take(c.domain, c.use)
	c.taken = c.refused == nil
	return c.refused
}

// take counts what a domain submits, or says why it may not. The caller has the lock.
func (q *Quotas) take(domain string, use quota.Use) error {
	d, now := q.catalog.Domain(domain), q.now()
	if err := q.takesMore(domain, d.GetQuota(), now); err != nil {
		return err
	}
	may := mayUse(d)
	if wait := q.book.Take(domain, may, use, now); wait > 0 {
		return q.refuse(signals.QuotaSubmits, wait, "submits more than its quota of %d tasks/s, %d bytes/s (0: any number): nothing was stored; repeat the request later", may.Tasks, may.Bytes)
	}
	return nil
}

// takesMore refuses what a domain submits that has as much waiting as it may. All that is fresh counts as waiting, since no owner may have reported it yet.
func (q *Quotas) takesMore(domain string, of *yardv1.Quota, now time.Duration) error {
	tasks, bytes := of.GetWaitingTasks(), of.GetStoredBytes()
	if tasks == 0 && bytes == 0 {
		return nil
	}
	waits, fresh := q.waiting.Count(domain, now), q.book.Fresh(domain, now)
	const over = "has %d %s waiting and submitted %d in the last second, and its quota of %s is %d: nothing was stored; repeat the request later"
	switch {
	case tasks > 0 && waits.Tasks+fresh.Tasks >= tasks:
		return q.refuse(signals.QuotaWaitingTasks, againWait, over, waits.Tasks, "tasks", fresh.Tasks, "waiting_tasks", tasks)
	case bytes > 0 && waits.Bytes+fresh.Bytes >= bytes:
		return q.refuse(signals.QuotaStoredBytes, againWait, over, waits.Bytes, "bytes", fresh.Bytes, "stored_bytes", bytes)
	}
	return nil
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
