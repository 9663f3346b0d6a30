package yardv1

// UnknownField returns the path of a field that this version does not know.
func (r *EndTasksRequest) UnknownField() (string, bool) {
	return firstOf(
		func() (string, bool) { return payloadField("/result", r.Result) },
		func() (string, bool) { return field("", r.unknownFields) },
	)
}

// UnknownField returns the path of a field that this version does not know.
func (r *StuckTasksRequest) UnknownField() (string, bool) { return field("", r.unknownFields) }
