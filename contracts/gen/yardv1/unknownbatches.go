package yardv1

// UnknownField returns the path of a field that this version does not know.
func (r *CreateBatchRequest) UnknownField() (string, bool) {
	c := r.Callback
	if c == nil {
		return field("", r.unknownFields)
	}
	return firstOf(
		func() (string, bool) { return field("/callback", c.unknownFields) },
		func() (string, bool) { return payloadField("/callback/payload", c.Payload) },
		func() (string, bool) { return c.Retry.unknownField("/callback/retry") },
		func() (string, bool) { return field("", r.unknownFields) },
	)
}

// UnknownField returns the path of a field that this version does not know.
func (r *GetBatchRequest) UnknownField() (string, bool) { return field("", r.unknownFields) }

// UnknownField returns the path of a field that this version does not know.
func (r *ListBatchesRequest) UnknownField() (string, bool) { return field("", r.unknownFields) }

// UnknownField returns the path of a field that this version does not know.
func (r *CloseBatchRequest) UnknownField() (string, bool) { return field("", r.unknownFields) }

// UnknownField returns the path of a field that this version does not know.
func (r *WaitBatchRequest) UnknownField() (string, bool) { return field("", r.unknownFields) }

// UnknownField returns the path of a field that this version does not know.
func (r *CancelBatchRequest) UnknownField() (string, bool) { return field("", r.unknownFields) }
