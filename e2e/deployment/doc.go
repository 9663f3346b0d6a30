// Package deployment checks what runs Yardmaster elsewhere: the container image, the compose file, the Helm chart and
// the unit of systemd.
//
// Owns: one image for all its tests, built by infra/tools/image, and the programs in it. The compose file runs as processes
// on this machine, from those programs: its command lines, with local addresses in place of names. The settings that chart
// and unit make are read by the programs.
//
// Never does: need a container daemon or a cluster of Kubernetes. The tools that read compose file and chart are
// those of infra/tools; they decode by the types of the specification and of the Kubernetes API.
//
// On failure: the output of the tool, or of the process.
package deployment
