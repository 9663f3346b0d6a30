// Package linear records what clients ask of a running system, and checks that each task, and each unique key, went through one life that
// explains all the answers.
//
// Owns: a model of a task with its key (model_test.go), a traffic of clients and workers that writes down each call with its answer, and the
// check of such a history by porcupine. The short form runs in one process; the long one on processes that are killed and paused, with
// three NATS servers.
//
// The promise, and so the model: each call takes effect at one moment between its start and its answer. One without an answer, or
// with UNKNOWN, may take effect at any later time, or never. This holds for tasks.submit, update, cancel, complete, fail and heartbeat, for
// deadletters.redrive, for the attempts that tasks.poll grants, and for tasks.get, with one exception of the documents: of a task that waits for its time, or is not
// read yet, tasks.get may show what it was before the last updates. tasks.list promises no moment: it only finds the tasks in here.
//
// An attempt is taken from a worker by the engine alone. The task's own history says that it was, and when that may have been at the earliest is
// computed from what the worker asked and heard: two attempts at once are found even where the history looks well.
//
// Never does: measure.
//
// On failure: the first history that no life explains is printed, and drawn in a file whose path is printed.
package linear
