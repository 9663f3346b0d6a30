package main

import "github.com/yardmaster-io/yardmaster/contracts/fault"

// workersEndpoint tells of live workers.
func workersEndpoint() endpoint {
	const id = "5f0cb1a86d3947e2a90c61f7d2e84b13"
	return endpoint{
		Verb: "workers.list", Does: "List the workers that send signs of life, and what they run.",
		Request: "ListWorkersRequest", Response: "ListWorkersResponse",
		In: `{"limit":10}`,
		Out: `{"workers":[{"worker_id":"` + id + `","worker":"mailer-1","version":"v1.4.2","host":"node-7","tasklists":["mail"],"running_for_ms":86400000,"heard_ago_ms":1200,"every_ms":3000,"attempts_count":1,` +
			`"attempts":[{"task_id":"` + exampleTask + `","type":"email.send","tasklist":"mail","running_for_ms":412}]}],"known_for_ms":172800000}`,
		codes: []fault.Code{fault.NotFound, fault.FailedPrecondition},
		Notes: []string{
			"Workers that send none are in `tasklists.pollers` only.",
			"FAILED_PRECONDITION: the cluster writes a log version below 10. End the upgrade first.", pageNote,
		},
	}
}
