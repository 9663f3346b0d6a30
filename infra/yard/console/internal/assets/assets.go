// Package assets has the files that a page of the console loads: two scripts of others, one of ours, and the style.
//
// Owns: the files, their checksums, and how they are served: with a path that changes with any file, so that browsers keep them. Never does: load anything
// from another host. On failure: a file that is not there is 404.
package assets

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"strings"
)

//go:embed files
var files embed.FS

// Prefix is the beginning of the path of all files.
const Prefix = "/assets/"

// Files are served below a path that has their checksum.
type Files struct{ version string }

// New computes the checksum of the files.
func New() (*Files, error) {
	sum := sha256.New()
	err := fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := files.ReadFile(path)
		if err == nil {
			_, err = sum.Write(text)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return &Files{version: hex.EncodeToString(sum.Sum(nil))[:16]}, nil
}

// Path is where a page finds a file.
func (f *Files) Path(name string) string { return Prefix + f.version + "/" + name }

// ServeHTTP serves a file of this version.
func (f *Files) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, ok := strings.CutPrefix(r.URL.Path, Prefix+f.version+"/")
	if text, err := files.ReadFile("files/" + name); !ok || err != nil || len(text) == 0 {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	http.ServeFileFS(w, r, files, "files/"+name)
}
