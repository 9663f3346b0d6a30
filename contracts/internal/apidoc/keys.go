package main

import "github.com/yardmaster-io/yardmaster/contracts/fault"

// keyEndpoints are about order keys.
func keyEndpoints() []endpoint {
	const key = `{"order_key":"account-7","head":{"task_id":"` + exampleTask + `","domain":"shop","created_at_ms":1789000000000,"tasklist":"mail","type":"email.send","priority":3,"state":"backoff","failures":3,"grants":3,"order_key":"account-7","order_policy":"block","blocked":true},"waiting":12,"since_ms":1763721900000,"reason":"no route to host"}`
	const named = `"order_key":"account-7","task_id":"` + exampleTask + `","reason":"the account is closed","by":"ann"`
	codes := []fault.Code{fault.NotFound, fault.FailedPrecondition}
	return []endpoint{
		{
			Verb: "keys.list", Does: "Tell of the order keys with unfinished tasks, those that wait for longest at first, page by page.",
			Request: "ListKeysRequest", Response: "ListKeysResponse",
			In: `{"blocked":true,"limit":10}`, Out: `{"keys":[` + key + `],"next_cursor":"1763721900000.account-7"}`, codes: codes,
			Notes: []string{"`tasks.list` with `order_key` lists the tasks of a key.", pageNote},
		},
		{
			Verb: "keys.get", Does: "Tell of one order key.",
			Request: "GetKeyRequest", Response: "GetKeyResponse",
			In: `{"order_key":"account-7"}`, Out: `{"key":` + key + `}`, codes: codes,
		},
		{
			Verb: "keys.unblock", Does: "Give the task that blocks an order key one more attempt.",
			Request: "UnblockKeyRequest", Response: "UnblockKeyResponse",
			In:  `{` + named + `,"retry":{"max_attempts":5}}`,
			Out: `{"task_id":"` + exampleTask + `","revision":2}`, codes: append(codes, fault.Unknown),
			Notes: []string{"UNKNOWN: it may have been done. Repeat it with the same request_id and the task's id."},
		},
		{
			Verb: "keys.skip", Does: "Make the first task of an order key a dead letter, so that the key goes on.",
			Request: "SkipKeyRequest", Response: "SkipKeyResponse",
			In: `{` + named + `}`, Out: `{"task_id":"` + exampleTask + `"}`, codes: append(codes, fault.Unknown),
			Notes: []string{
				"Redriven (`deadletters.redrive`), the task has no order key any more: its key has gone on.",
				"UNKNOWN: it may have been done. Repeat it with the same request_id and the task's id.",
			},
		},
	}
}
