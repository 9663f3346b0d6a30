package main

import "github.com/yardmaster-io/yardmaster/contracts/fault"

// workerEndpoints are for operators of one domain: live workers.
func workerEndpoints() []endpoint {
	const id = "5f0cb1a86d3947e2a90c61f7d2e84b13"
	worker := func(drain string) string {
		return `{"worker_id":"` + id + `","worker":"mailer-1","version":"v1.4.2","host":"node-7","tasklists":["mail"],"running_for_ms":86400000,"heard_ago_ms":1200,"every_ms":3000,"attempts_count":1,` +
			`"attempts":[{"task_id":"` + exampleTask + `","type":"email.send","tasklist":"mail","running_for_ms":412}]` + drain + `}`
	}
	const drain, stop = `{"reason":"its disk fails","by":"ann","since_ms":1763721600000}`, `{"stop":true,"reason":"its disk fails","by":"ann","since_ms":1763721600000}`
	const fullNote = "FAILED_PRECONDITION: 1000 workers of the domain are drained. Resume some; those that are gone are forgotten after 10 minutes."
	const youngNote = "UNAVAILABLE: the worker is not heard, and the engine has listened for less than a minute. Repeat it."
	return []endpoint{
		{
			Verb: "workers.list", Does: "List the workers that send signs of life, and what they run.",
			Request: "ListWorkersRequest", Response: "ListWorkersResponse",
			In:    `{"limit":10}`,
			Out:   `{"workers":[` + worker("") + `],"known_for_ms":172800000}`,
			codes: []fault.Code{fault.NotFound, fault.FailedPrecondition},
			Notes: []string{
				"Workers that send none are in `tasklists.pollers` only.",
				pageNote,
			},
		},
		{
			Verb: "workers.drain", Does: "Drain a worker: it gets no new attempts, and what it runs goes on.",
			Request: "DrainWorkerRequest", Response: "DrainWorkerResponse",
			In:    `{"worker_id":"` + id + `","reason":"its disk fails","by":"ann"}`,
			Out:   `{"worker":` + worker(`,"drain":`+drain) + `}`,
			codes: []fault.Code{fault.NotFound, fault.FailedPrecondition},
			Notes: []string{
				"Repeat it at will. Only workers that send signs of life are known, and only polls that name the worker's id are held back.",
				youngNote, fullNote,
			},
		},
		{
			Verb: "workers.stop", Does: "Stop a worker: it is drained, and asked to end.",
			Request: "StopWorkerRequest", Response: "StopWorkerResponse",
			In:    `{"worker_id":"` + id + `","reason":"its disk fails","by":"ann"}`,
			Out:   `{"worker":` + worker(`,"drain":`+stop) + `}`,
			codes: []fault.Code{fault.NotFound, fault.FailedPrecondition},
			Notes: []string{
				"A worker that has no room for tasks does not poll; it asks with `no_tasks`, as the SDK does every 5 s. One that does neither is drained, and learns of the stop later.",
				youngNote, fullNote,
			},
		},
		{
			Verb: "workers.resume", Does: "End the drain of a worker, or take back that it is to stop.",
			Request: "ResumeWorkerRequest", Response: "ResumeWorkerResponse",
			In: `{"worker_id":"` + id + `"}`, Out: `{"drain":` + drain + `}`,
			codes: []fault.Code{fault.NotFound, fault.FailedPrecondition},
			Notes: []string{"A worker that has learnt that it is to stop ends all the same."},
		},
	}
}
