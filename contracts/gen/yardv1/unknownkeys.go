package yardv1

// UnknownField returns the path of a field that this version does not know.
func (r *ListKeysRequest) UnknownField() (string, bool) { return field("", r.unknownFields) }

// UnknownField returns the path of a field that this version does not know.
func (r *GetKeyRequest) UnknownField() (string, bool) { return field("", r.unknownFields) }

// UnknownField returns the path of a field that this version does not know.
func (r *SkipKeyRequest) UnknownField() (string, bool) { return field("", r.unknownFields) }

// UnknownField returns the path of a field that this version does not know.
func (r *UnblockKeyRequest) UnknownField() (string, bool) {
	return firstOf(
		func() (string, bool) { return r.Retry.unknownField("/retry") },
		func() (string, bool) { return field("", r.unknownFields) },
	)
}
