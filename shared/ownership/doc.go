// Package ownership decides which node serves which partition, without nodes ever
// talking to each other about it: each shows a heartbeat in the members bucket,
// watches everybody's, and computes the same answer by rendezvous hashing.
//
// Owns: this node's heartbeat, its view of the others, and the goroutine of each
// partition that is its own. And epochs: a number that each new owner of something
// raises, for those who must know the newest one from those before.
//
// It also holds that old code never misreads new records: nodes announce which log
// versions they read, who cannot read the cluster's is no candidate, and a partition
// whose records its owner does not know is given up and passes on (ErrGiveUp).
//
// Never does: elect, lock or fence. For moments two nodes may serve the same
// partition, or no one; what is served must tolerate that (in Yardmaster the log
// decides, and this only says who does the work). Only a node that is believed dead, and one that
// holds a partition for longer than handoverMax after it moved, make that happen: a node shows
// that it is about to serve a partition before it begins, so that one which joins knows of it. An epoch tells owners apart; what
// fences the older ones is their log.
//
// On failure: a node not heard of for Expiry is gone, by this node's own clock; no
// clock is compared with another's. A heartbeat that was there before a watch began is as old
// as the server says, counted from this node's own echo, so the dead are not taken for alive;
// their heartbeats are removed after a while. A node that cannot reach NATS keeps its last
// view rather than to think itself alone, and gives the others a new Expiry to show
// themselves once it is back; where what it serves is unfenced (Config), it stops
// serving until then. It knows whether it hears the others by hearing
// itself: its own heartbeat comes back by the same watch. A partition whose Serve
// fails or panics is served again after a back-off, and the others do not notice.
// One that all nodes gave up is served by no one, and tried again after a while.
package ownership
