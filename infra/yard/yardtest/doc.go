// Package yardtest runs a whole Yardmaster in a test, in one line:
//
//	e := yardtest.New(t)
//	id, err := SendEmail.Submit(ctx, e.Client, email)
//
// It is the real engine: an embedded nats-server on a free port of 127.0.0.1, the four services, tables in memory,
// no Redis. It is beside package stack, which starts it, and not in the SDK, whose users import no engine:
// only a program's tests depend on it.
//
// Owns: the engine of a test, its data in a temporary folder, and its domains. All of it ends with the test.
//
// Never does: fake an answer. Delays, back-offs and time-outs take real time: give the tasks of
// a test short ones, or run it in FakeTime, where the time jumps.
//
// On failure: what cannot be started, stored or read ends the test with t.Fatal. RunToIdle and RunToEnd return an
// error that names what is left.
package yardtest
