// Package process is what the four services' binaries have in common: from the command line to a running service and back to a clean exit.
//
// Owns: the settings every service has (Config), the order of a start, the name of a node, the cluster's partitioning as this process sees it, readiness
// and liveness over HTTP and NATS, and the order of a stop.
//
// Never does: know what a service does. It is given a function that builds one.
//
// On failure: all wrong settings are reported at once and nothing is started. A NATS that cannot be reached, or a JetStream that is not ready yet, is
// waited for, with a line in the log every 10 s. A cluster of another partitioning, or streams that cannot be made to fit, end the process with an error,
// because to go on would harm the data. A service that fails ends its process: the operator's tool starts it again, and other nodes take its share over
// meanwhile.
//
// A service's main is this:
//
//	type settings struct {
//		process.Config
//		Own
//	}
//
//	type Own = history.Config // embedded, so that its settings stand beside the common ones
//
//	func main() {
//		os.Exit(process.Main("history", settings{process.DefaultConfig(":8081"), history.DefaultConfig()}, build))
//	}
package process
