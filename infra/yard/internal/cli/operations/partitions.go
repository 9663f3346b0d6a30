package operations

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/health"
	"github.com/yardmaster-io/yardmaster/shared/process"
)

// unownedShown is how many partitions without an owner a line names.
const unownedShown = 10

// owner is a process that serves a partition.
type owner struct {
	node    string
	sinceMs int64
	// snapshot is nil where the service makes none, or it is not known yet.
	snapshot *process.Snapshot
}

// ownersOf are the owners of each partition of a service, as its processes report them. While a partition moves it may have none, or two.
func ownersOf(service string, answers []process.Answer) [][]owner {
	var all [][]owner
	for _, h := range answers {
		if h.Service != service {
			continue
		}
		if missing := h.Partitions - len(all); missing > 0 {
			all = append(all, make([][]owner, missing)...)
		}
		for _, s := range h.Serves {
			if s.Partition < len(all) {
				all[s.Partition] = append(all[s.Partition], owner{h.Node, s.SinceMs, s.Snapshot})
			}
		}
	}
	return all
}

// printPartitions writes a line for each service that has partitions, and with all a line for each partition.
func printPartitions(t *command.Table, answers []process.Answer, all bool) {
	if !slices.ContainsFunc(answers, func(h process.Answer) bool { return h.Partitions > 0 }) {
		return
	}
	t.Row()
	t.Row("SERVICE", "SERVED", "LAST MOVED", "TO", "WITHOUT AN OWNER")
	for _, service := range health.Services() {
		owners := ownersOf(service, answers)
		var last owner
		var unowned []string
		for p, of := range owners {
			if len(of) == 0 {
				unowned = append(unowned, fmt.Sprint(p))
			}
			for _, o := range of {
				if o.sinceMs > last.sinceMs {
					last = o
				}
			}
		}
		if len(owners) == 0 {
			continue
		}
		t.Row(service, fmt.Sprintf("%d of %d", len(owners)-len(unowned), len(owners)), command.At(last.sinceMs), command.OrDash(last.node), listed(unowned))
	}
	if !all {
		return
	}
	t.Row()
	t.Row("SERVICE", "PARTITION", "OWNER", "SINCE", "SNAPSHOT", "LOG BEHIND IT")
	for _, service := range health.Services() {
		for p, of := range ownersOf(service, answers) {
			if len(of) == 0 {
				t.Row(service, p, "none", "-", "-", "-")
			}
			for _, o := range of {
				saved, behind := age(o.snapshot)
				t.Row(service, p, o.node, command.At(o.sinceMs), saved, behind)
			}
		}
	}
}

// age is when the state of a partition was saved last, and how much of the log follows it.
func age(s *process.Snapshot) (saved, behind string) {
	switch {
	case s == nil:
		return "-", "-"
	case s.AtMs == 0:
		saved = "not by this owner"
	default:
		saved = command.At(s.AtMs)
	}
	return saved, humanize.IBytes(uint64(max(s.LogBytes, 0)))
}

// listed names the first of some partitions, and counts the others.
func listed(all []string) string {
	if len(all) == 0 {
		return "-"
	}
	text := strings.Join(all[:min(len(all), unownedShown)], ", ")
	if others := len(all) - unownedShown; others > 0 {
		text += fmt.Sprintf(" and %d more, see --all", others)
	}
	return text
}
