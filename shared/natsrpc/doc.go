// Package natsrpc makes connections to NATS and typed calls between services
// over them: protobuf bodies, fault.Error in micro's error headers, and the
// caller's deadline in a header.
//
// Owns: how a connection behaves when the server goes away (it comes back for
// ever, and what is published meanwhile fails at once instead of being sent
// late), the form of a call, and how many of them a server handles at a time.
//
// Never does: retry a call, queue one, or store anything. A call is core NATS:
// who subscribes to the subject answers it, and no subscriber is an answer
// too (fault.Unavailable).
//
// On failure: every error of Call is a *fault.Error. Unavailable stands for all
// failures of the way there and back, and so also for a call that was carried
// out and whose answer was lost: calls between services must tolerate repetition.
package natsrpc
