package taskstate

import "github.com/yardmaster-io/yardmaster/contracts/ids"

// StartsDirectly has the first attempt of a task begin with its submit, by an attempt of this nonce, which is not 0: the
// frontend that stored it has the poll, and has given it the task.
func StartsDirectly(t *Task, nonce uint64, worker *Worker) {
	t.Attempt = Attempt{Nonce: nonce, Worker: worker}
}

// ComesDirectly tells whether t is a submit that is not read yet, and its first attempt begins with it.
func ComesDirectly(t *Task) bool { return t.Version == 0 && t.Parkings == 0 && t.Attempt.Nonce != 0 }

// startDirectly begins the attempt that came with the submit of a ready task, if one did and the task may start: else it is ready as any
// other, and what its worker says of the attempt is stale.
func startDirectly(t *Task, asked Attempt, did Effects, now int64) Effects {
	if asked.Nonce == 0 || t.Order() != nil {
		return did
	}
	e := Event{Kind: Started, ID: t.ID, Fence: ids.Token{Position: t.Position, Version: 1, Nonce: asked.Nonce}, Worker: asked.Worker}
	if v, _ := start(t, &e, now); !v.Granted {
		return did
	}
	return Effects{}
}
