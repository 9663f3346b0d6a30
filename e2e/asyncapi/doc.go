// Package asyncapi holds the API reference against the running system.
//
// Owns: the proof that contracts/asyncapi.json, and with it API.md, tells of the
// endpoints that a frontend serves, no more and no fewer, with their messages; and
// validate.mjs, which has the official parser check the document's form.
//
// Never does: test what an endpoint does; package scenario does.
//
// On failure: the reference and the code differ. The error is either in the
// list in contracts/internal/apidoc/endpoints.go or the frontend's.
package asyncapi
