// Package natsgate is the gateway's ports on NATS.
//
// Owns: the one inbox of a frontend, and how what arrives there is distinguished:
// verdicts, refused events, polls that no one took, and the load reports of the
// owners of history and matching.
//
// Never does: retry, or decide anything: the gateway does.
//
// On failure: what cannot be sent is an error at once; there is no buffer that
// would send it late.
package natsgate
