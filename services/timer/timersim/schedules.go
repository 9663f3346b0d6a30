package timersim

import "github.com/yardmaster-io/yardmaster/services/timer/internal/schedules"

// ScheduleName names a schedule.
type ScheduleName = schedules.Name

// Schedule is one as it is stored, and Decision what follows for it at a time. The keeper of the service decides by the same calls.
type (
	Schedule = schedules.Plan
	Decision = schedules.Decision
)

// ScheduleOf reads a schedule.
var ScheduleOf = schedules.PlanOf
