// Package documents runs what the documents tell people to type.
//
// Owns: how a fenced block of a Markdown file is read, and the rule that each block of shell is run by a test or says
// why it is not, and each block of Go compiles. The first program of a newcomer is run, too.
//
//	<!-- not run: REASON -->        no one runs the next block of shell
//	<!-- run by e2e/x/y_test.go --> that test runs it, in its own way
//
// A block without such a line before it is run here, by bash, which ends at the first command that fails. Its
// PATH has `yard` and a `nats` of this test, NATS_URL names a running system with the domain shop, and its folder is an empty
// one, or the repository's root where the block says `./`. Processes that it leaves in the background are killed.
// A `nats request` puts the id and the token of the task that was polled last in place of those in the
// document, and fails on an error or a verdict that is not OK. A comment that begins with an answer, `# {"results"`,
// is compared with it as far as to its first value.
//
// Never does: run API.md, whose examples e2e/asyncapi sends.
//
// On failure: the block's place, and what its commands printed.
package documents
