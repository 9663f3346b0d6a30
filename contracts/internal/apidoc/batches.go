package main

import "github.com/yardmaster-io/yardmaster/contracts/fault"

// batchEndpoints are about tasks whose end is known as a whole.
func batchEndpoints() []endpoint {
	const named = `"batch_id":"import-2025-11-21"`
	const batch = `{"batch":{` + named + `,"state":"closed","tasks":5000,"active":12,"completed":4980,"dead":8,"created_at_ms":1763721600000,"closed_at_ms":1763721630000,"expires_at_ms":1766313600000,"keep_ms":86400000,"callback_type":"import.done","callback_tasklist":"imports"}}`
	const over = `{"batch":{` + named + `,"state":"completed","tasks":5000,"completed":4991,"dead":9,"created_at_ms":1763721600000,"closed_at_ms":1763721630000,"ended_at_ms":1763721900000,"expires_at_ms":1766313600000,"keep_ms":86400000,"callback_type":"import.done","callback_tasklist":"imports","callback_task_id":"` + exampleTask + `"}}`
	codes := []fault.Code{fault.NotFound, fault.FailedPrecondition}
	return []endpoint{
		{
			Verb: "batches.create", Does: "Make a batch, into which tasks are submitted then.",
			Request: "CreateBatchRequest", Response: "CreateBatchResponse",
			In:  `{` + named + `,"callback":{"type":"import.done","tasklist":"imports"}}`,
			Out: `{"batch":{` + named + `,"state":"open","created_at_ms":1763721600000,"expires_at_ms":1766313600000,"keep_ms":86400000,"callback_type":"import.done","callback_tasklist":"imports"}}`, codes: append(codes, fault.AlreadyExists),
			Notes: []string{
				"Submit its tasks with `batch_id`, in as many requests and by as many clients as you like, then close it. The log counts what is stored, so no client needs to.",
				"ALREADY_EXISTS: there is a batch of this name with other contents, or one that is over and still kept.",
			},
		},
		{
			Verb: "batches.get", Does: "Tell of a batch: its state, and how many of its tasks have ended, and how.",
			Request: "GetBatchRequest", Response: "GetBatchResponse",
			In: `{` + named + `}`, Out: batch, codes: codes,
		},
		{
			Verb: "batches.list", Does: "Tell of the batches of the domain, page by page.",
			Request: "ListBatchesRequest", Response: "ListBatchesResponse",
			In:  `{"states":["open","closed"]}`,
			Out: `{"batches":[{` + named + `,"state":"open","created_at_ms":1763721600000,"expires_at_ms":1766313600000,"keep_ms":86400000}]}`, codes: codes,
		},
		{
			Verb: "batches.close", Does: "Say that a batch has all its tasks: it completes when they have ended.",
			Request: "CloseBatchRequest", Response: "CloseBatchResponse",
			In: `{` + named + `}`, Out: batch, codes: codes,
			Notes: []string{
				"A submit that comes in the same moment is stored and counted, or refused. A batch without tasks completes at once.",
				"A batch that is over is answered as it is.",
			},
		},
		{
			Verb: "batches.wait", Does: "Wait until a batch is over.",
			Request: "WaitBatchRequest", Response: "WaitBatchResponse", timeout: "35s",
			In: `{` + named + `,"wait_ms":30000}`, Out: over, codes: codes,
			Notes: []string{"Wait for the answer longer than `wait_ms`, by 5 s for example. If the batch is not over by then, ask again."},
		},
		{
			Verb: "batches.cancel", Does: "Close a batch and cancel the rest of its tasks, step by step.",
			Request: "CancelBatchRequest", Response: "CancelBatchResponse",
			In:  `{` + named + `,"reason":"wrong file","by":"ann"}`,
			Out: `{"purged":{"found":500,"cancelled":500,"next_cursor":"06dabzyw00004emhrks7qr2x30.06dabzyw00004emhrks7qr2x30.1.1.0.0"}}`, codes: codes,
			Notes: []string{"The batch completes when the tasks that are left have ended, and its callback comes then, with the counts."},
		},
	}
}
