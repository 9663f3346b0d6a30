package validate

import (
	"cmp"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// rate checks how many attempts may start in a time; nil = any number.
func rate(path string, r *yardv1.Rate) error {
	if r == nil {
		return nil
	}
	if err := firstError(
		between(path+"/tasks", r.Tasks, 1, RateTasksMax),
		optional(path+"/per_ms", r.PerMs, 1, RatePerMax.Milliseconds()),
		optional(path+"/burst", r.Burst, 1, RateTasksMax),
	); err != nil {
		return err
	}
	if per := cmp.Or(r.PerMs, RatePerDefault.Milliseconds()); int64(r.Tasks) > per*RateTasksPerMSMax {
		return invalid(path+"/tasks", "is %d in %d ms, at most %d in each ms are allowed", r.Tasks, per, RateTasksPerMSMax)
	}
	return nil
}
