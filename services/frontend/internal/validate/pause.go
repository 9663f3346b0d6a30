package validate

import (
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// PauseTasklist checks a tasklists.pause.
func PauseTasklist(req *yardv1.PauseTasklistRequest) error {
	return firstError(name("/name", req.Name), pause(req.Reason, req.By, req.ForMs))
}

// PauseType checks a types.pause.
func PauseType(req *yardv1.PauseTypeRequest) error {
	return firstError(typeName("/name", req.Name), pause(req.Reason, req.By, req.ForMs))
}

// DrainTasklist checks a tasklists.drain.
func DrainTasklist(req *yardv1.DrainTasklistRequest) error {
	return firstError(name("/name", req.Name), pause(req.Reason, req.By, req.ForMs))
}

// DrainType checks a types.drain.
func DrainType(req *yardv1.DrainTypeRequest) error {
	return firstError(typeName("/name", req.Name), pause(req.Reason, req.By, req.ForMs))
}

// PauseGroup checks a groups.pause.
func PauseGroup(req *yardv1.PauseGroupRequest) error {
	return firstError(typeName("/name", req.Name), pause(req.Reason, req.By, req.ForMs))
}

// DrainGroup checks a groups.drain.
func DrainGroup(req *yardv1.DrainGroupRequest) error {
	return firstError(typeName("/name", req.Name), pause(req.Reason, req.By, req.ForMs))
}

// ResumeTasklist checks a tasklists.resume.
func ResumeTasklist(req *yardv1.ResumeTasklistRequest) error { return name("/name", req.Name) }

// ResumeType checks a types.resume.
func ResumeType(req *yardv1.ResumeTypeRequest) error { return typeName("/name", req.Name) }

// ResumeGroup checks a groups.resume.
func ResumeGroup(req *yardv1.ResumeGroupRequest) error { return typeName("/name", req.Name) }

func pause(reason, by string, forMS int64) error {
	if forMS != 0 {
		if err := between("/for_ms", forMS, ms(PauseMin), ms(AheadMax)); err != nil {
			return err
		}
	}
	return firstError(text("/reason", reason, ReasonBytesMax), text("/by", by, PauserBytesMax))
}
