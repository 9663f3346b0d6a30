// Package provision makes a JetStream server match contracts/topology, or refuses.
//
// Owns: which stream and bucket settings are ours, creating what is missing,
// correcting what may be corrected, and the cluster's partitioning and the secret of
// its tokens, which are written once and never changed. Several services may do all
// this at once.
//
// Never does: delete anything but a hint stream that is offline, scale a stream's replicas down, or touch settings
// it has no opinion about (placement, metadata, a size limit where topology sets
// none): those are the operator's.
//
// On failure: while JetStream is not ready it waits, saying so; a stream that exists and does not
// answer holds up no one's start. A difference that
// cannot be corrected is an error that names the stream and the setting: the
// service must not start on it.
package provision
