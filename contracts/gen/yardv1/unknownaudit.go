package yardv1

// UnknownField returns the path of a field that this version does not know.
func (r *ListAuditRequest) UnknownField() (string, bool) { return field("", r.unknownFields) }
