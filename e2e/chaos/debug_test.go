package chaos_test

import (
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

func (l *load) debugSlowest(tasks map[string]*yardv1.Task) {
	var all []*yardv1.Task
	for key, x := range tasks {
		if !l.orders[key].delayed {
			all = append(all, x)
		}
	}
	slices.SortFunc(all, func(a, b *yardv1.Task) int {
		return int((b.FinishedAtMs - b.CreatedAtMs) - (a.FinishedAtMs - a.CreatedAtMs))
	})
	for _, x := range all[:12] {
		s := ""
		for _, e := range x.Events {
			s += " " + e.Kind.String()[16:] + "@" + time.UnixMilli(e.AtMs).Format("05.000") + "/" + e.Worker
		}
		l.t.Logf("%s %s %dms created %s: %s", x.TaskId, x.Type, x.FinishedAtMs-x.CreatedAtMs, time.UnixMilli(x.CreatedAtMs).Format("05.000"), s)
	}
}
