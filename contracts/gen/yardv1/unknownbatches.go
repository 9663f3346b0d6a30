package yardv1

// UnknownField returns the path of a field that this version does not know.
func (r *CreateBatchRequest) UnknownField() (string, bool) {
	return firstOf(
		func() (string, bool) { return r.Callback.unknownField("/callback") },
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
