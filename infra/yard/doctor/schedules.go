package doctor

import (
	"fmt"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/schedule"
)

// scheduleLate is how long after a time of its calendar a schedule may be undecided about it.
const scheduleLate = 10 * time.Minute

// scheduleHome takes a schedule (decision 0061): its calendar can be read, and its keeper has decided the times that have passed.
func (p *pass) scheduleHome(r natslog.Record) error {
	var h logv1.ScheduleHome
	if !p.decode(topology.HistoryStream(p.partition), r, &h) || h.Deleted {
		return nil
	}
	p.scanned.Schedules++
	report := func(code Code, format string, args ...any) {
		p.report(Finding{Code: code, Where: p.inLog(r.Seq), Domain: topology.DomainOfScheduleHome(p.partition, r.Subject), What: fmt.Sprintf("schedule %q ", h.Name) + fmt.Sprintf(format, args...)})
	}
	of := &yardv1.Schedule{}
	if err := of.UnmarshalVT(h.Schedule); err != nil {
		report(ScheduleBroken, "cannot be decoded: %v", err)
		return nil
	}
	times, err := schedule.Parse(of)
	if err != nil {
		report(ScheduleBroken, "has no calendar: %v", err)
		return nil
	}
	runs := h.Runs
	for _, due := range h.Due {
		if due.Reason == logv1.RunReason_RUN_REASON_SCHEDULED {
			runs++
		}
	}
	if of.Paused || of.RunsMax > 0 && runs >= of.RunsMax {
		return nil
	}
	if at, ok := times.Next(time.UnixMilli(h.DecidedUpToMs)); ok && p.age(at.UnixMilli()) > scheduleLate {
		report(ScheduleLate, "was to run at %s", at.UTC().Format(time.RFC3339))
	}
	return nil
}
