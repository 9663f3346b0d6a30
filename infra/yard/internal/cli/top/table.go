package top

import (
	"fmt"
	"strings"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
)

// headings are the first words of the lines that name columns.
var headings = []string{"DOMAIN", "FULL", "LATE"}

// fill adds the rows of an answer: the cluster, its domains, full limits, late timers.
func fill(t *command.Table, resp *yardv1.TopDomainsResponse) {
	t.Row(owners(resp))
	domains(t, resp)
	if len(resp.FullLimits) > 0 {
		t.Row()
		t.Row("FULL LIMIT", "DOMAIN", "CONCURRENCY", "RUNNING", "FULL SINCE", "TASKLISTS WAIT")
		for _, l := range resp.FullLimits {
			t.Row(l.Ref, l.Domain, command.OrDash(l.MaxConcurrency), l.Running, command.Ago(l.FullForMs), l.WaitingTasklists)
		}
	}
	if len(resp.Late) > 0 {
		t.Row()
		t.Row("LATE TIMERS OF", "LATE", "WAITING")
		for _, d := range resp.Late {
			t.Row(d.Domain, command.Lasting(d.LateMs), d.Waiting)
		}
	}
}

// owners says which partitions and shards answer.
func owners(resp *yardv1.TopDomainsResponse) string {
	var parts []string
	for _, p := range []struct {
		name   string
		of     int32
		silent []int32
	}{{"history", resp.Partitions, resp.SilentHistory}, {"timer", resp.Partitions, resp.SilentTimers}, {"matching", resp.Shards, resp.SilentShards}} {
		text := fmt.Sprintf("%s %d of %d", p.name, p.of-int32(len(p.silent)), p.of)
		if len(p.silent) > 0 {
			text += fmt.Sprintf(" (without an answer: %s)", strings.Trim(fmt.Sprint(p.silent), "[]"))
		}
		parts = append(parts, text)
	}
	return "partitions that answer: " + strings.Join(parts, ", ")
}

func domains(t *command.Table, resp *yardv1.TopDomainsResponse) {
	percent := func(part float64) string { return fmt.Sprintf("%.0f%%", 100*part) }
	rate := func(n float64) string { return fmt.Sprintf("%.1f", n) }
	lasting := func(ms int64) string {
		if ms == 0 {
			return "-"
		}
		return command.Lasting(ms)
	}
	row := func(name, share, received string, d *yardv1.TopDomain) {
		t.Row(name, share, received, rate(d.AdmittedPerS), rate(d.StartedPerS), rate(d.CompletedPerS), rate(d.FailedPerS),
			d.Ready, d.Running, lasting(d.OldestReadyMs), lasting(d.LateMs), d.Waiting, d.Unread, d.Backoff, d.Weight)
	}
	t.Row("DOMAIN", "SHARE", "RECEIVED", "IN/S", "STARTED/S", "DONE/S", "FAILED/S", "READY", "RUNNING", "OLDEST", "LATE", "WAITING", "UNREAD", "BACKOFF", "WEIGHT")
	row("all", "", "", resp.Total)
	for _, d := range resp.Domains {
		row(d.Domain, percent(d.Share), percent(d.Received), d)
	}
	if resp.Others > 0 {
		t.Row(fmt.Sprintf("domains with work that are not shown: %d; see --limit", resp.Others))
	}
}
