// Package install installs the command as an unknown client does: by its path and version, without the
// repository.
//
// Owns: the proxy, a folder that has the modules of the working tree as if they were tagged, and what
// is proved with it: `go install` of the command and the services, programs that use the SDK, and
// each module that finds what it needs without the workspace.
//
// Never does: install from the network, or from the module cache but as a proxy. The modules that the repository
// needs are there, since this test is built with it.
//
// On failure: the test prints what the go command said.
package install
