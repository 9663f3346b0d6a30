//go:build !unix

package natsserver

import "os"

// lockFile has no equivalent here: the port, if it is a fixed one, has to tell two
// servers apart.
func lockFile(*os.File) error { return nil }
