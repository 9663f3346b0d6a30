package main

import "github.com/yardmaster-io/yardmaster/contracts/fault"

// deadLetterEndpoints are about tasks that used up their attempts.
func deadLetterEndpoints() []endpoint {
	const task = `{"task_id":"` + exampleTask + `","domain":"shop","tasklist":"mail","type":"email.send","priority":3,"state":"dead","failures":3,"grants":3,"created_at_ms":1763721600000,"finished_at_ms":1763721900000,"error_message":"no route to host","error_type":"network"}`
	const filter = `"filter":{"type":"email.send","error_type":"network"}`
	const rateNote = "Who sends the steps decides how fast it goes: wait between them to leave others room. A step may be repeated, and the whole given up, at any moment."
	codes := []fault.Code{fault.NotFound}
	return []endpoint{
		{
			Verb: "deadletters.list", Does: "Tell of the dead letters of the domain, those that ended first at first, page by page.",
			Request: "ListDeadLettersRequest", Response: "ListDeadLettersResponse",
			In:  `{` + filter + `,"limit":100}`,
			Out: `{"tasks":[` + task + `],"next_cursor":"1042.2210"}`, codes: codes,
			Notes: []string{"Dead letters are kept until they are redriven or purged, or are beyond the limits of their domain: longer than it keeps other finished tasks, mostly."},
		},
		{
			Verb: "deadletters.count", Does: "Count dead letters by type, error and time, step by step.",
			Request: "CountDeadLettersRequest", Response: "CountDeadLettersResponse",
			In:  `{"period_ms":3600000}`,
			Out: `{"counts":[{"type":"email.send","error_type":"network","period_at_ms":1763719200000,"letters":812,"first_at_ms":1763721600000,"last_at_ms":1763721900000}],"next_cursor":"1042.2210"}`, codes: codes,
			Notes: []string{"The counts of the steps add up: the same type, error and period may be in several."},
		},
		{
			Verb: "deadletters.get", Does: "Get one dead letter, whole.",
			Request: "GetDeadLetterRequest", Response: "GetDeadLetterResponse",
			In: `{"task_id":"` + exampleTask + `"}`, Out: `{"task":` + task + `}`, codes: codes,
		},
		{
			Verb: "deadletters.redrive", Does: "Bring dead letters back: by id, or step by step all that match a filter; or count them.",
			Request: "RedriveRequest", Response: "RedriveResponse",
			In:  `{` + filter + `,"limit":100,"retry":{"max_attempts":5},"reason":"the network is up again","by":"ann"}`,
			Out: `{"found":100,"redriven":99,"refused":1,"next_cursor":"1042.2210"}`, codes: append(codes, fault.FailedPrecondition),
			Notes: []string{
				"The task comes back with its id and its history, and goes through its tasklist like any other that is due. Its failures count from 0 again. It does not take its unique key again: another task may have it by now.",
				"OK means that it holds, though `tasks.get` may show it a moment later.", rateNote,
			},
		},
		{
			Verb: "deadletters.purge", Does: "Delete dead letters: by id, or step by step all that match a filter; or count them.",
			Request: "PurgeDeadLettersRequest", Response: "PurgeDeadLettersResponse",
			In:  `{` + filter + `,"by":"ann"}`,
			Out: `{"found":500,"purged":500,"next_cursor":"1542.2210"}`, codes: codes,
			Notes: []string{"A letter that is redriven in the same moment may count as purged, and its task comes back all the same.", rateNote},
		},
	}
}
