package yardv1

func (s *Schedule) unknownField(path string) (string, bool) {
	if s == nil {
		return "", false
	}
	return firstOf(
		func() (string, bool) { return s.Task.unknownField(path + "/task") },
		func() (string, bool) { return field(path, s.unknownFields) },
	)
}

func (t *NewTask) unknownField(path string) (string, bool) {
	if t == nil {
		return "", false
	}
	return firstOf(
		func() (string, bool) { return field(path, t.unknownFields) },
		func() (string, bool) { return payloadField(path+"/payload", t.Payload) },
		func() (string, bool) { return t.Retry.unknownField(path + "/retry") },
	)
}

// UnknownField returns the path of a field that this version does not know.
func (r *PutScheduleRequest) UnknownField() (string, bool) {
	return firstOf(
		func() (string, bool) { return r.Schedule.unknownField("/schedule") },
		func() (string, bool) { return field("", r.unknownFields) },
	)
}

// UnknownField returns the path of a field that this version does not know.
func (r *GetScheduleRequest) UnknownField() (string, bool) { return field("", r.unknownFields) }

// UnknownField returns the path of a field that this version does not know.
func (r *ListSchedulesRequest) UnknownField() (string, bool) { return field("", r.unknownFields) }

// UnknownField returns the path of a field that this version does not know.
func (r *DeleteScheduleRequest) UnknownField() (string, bool) { return field("", r.unknownFields) }

// UnknownField returns the path of a field that this version does not know.
func (r *PauseScheduleRequest) UnknownField() (string, bool) { return field("", r.unknownFields) }

// UnknownField returns the path of a field that this version does not know.
func (r *ResumeScheduleRequest) UnknownField() (string, bool) { return field("", r.unknownFields) }

// UnknownField returns the path of a field that this version does not know.
func (r *TriggerScheduleRequest) UnknownField() (string, bool) { return field("", r.unknownFields) }

// UnknownField returns the path of a field that this version does not know.
func (r *BackfillScheduleRequest) UnknownField() (string, bool) { return field("", r.unknownFields) }

// UnknownField returns the path of a field that this version does not know.
func (r *NextScheduleRequest) UnknownField() (string, bool) {
	return firstOf(
		func() (string, bool) { return r.Schedule.unknownField("/schedule") },
		func() (string, bool) { return field("", r.unknownFields) },
	)
}
