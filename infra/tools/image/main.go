// Command image builds the container image of Yardmaster without a container daemon:
//
//	image --tag yardmaster:dev --out yardmaster.tar [--platform linux/arm64]
//	image --root DIR
//
// The image has the command yard, the four services and the root certificates of Mozilla, and no shell. All programs
// are static. With --root the same files go to a folder, for a Dockerfile. Run it in the root of the repository.
//
// The files of the image depend on the commit and the version of Go only: all times in it are that of the commit.
package main

import (
	"archive/tar"
	"bytes"
	"debug/buildinfo"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// user is the number of the user that the programs run as, and that owns /data.
const user = 65532

// packages are the programs.
var packages = []string{
	"./infra/yard", "./services/frontend/cmd/frontend", "./services/history/cmd/history",
	"./services/matching/cmd/matching", "./services/timer/cmd/timer",
}

func main() {
	platform := flag.String("platform", "linux/amd64", "operating system and architecture")
	tag := flag.String("tag", "yardmaster:dev", "name of the image")
	out := flag.String("out", "", "file for the image, which docker load and podman load read")
	root := flag.String("root", "", "folder for the files of the image, instead of an image")
	flag.Parse()
	if err := run(*platform, *tag, *out, *root); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(platform, tag, out, root string) error {
	goos, arch, ok := strings.Cut(platform, "/")
	if !ok || (out == "") == (root == "") {
		return errors.New("want --platform OS/ARCHITECTURE, and one of --out and --root")
	}
	bin, err := os.MkdirTemp("", "yard-image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(bin)
	if err := compile(bin, goos, arch); err != nil {
		return err
	}
	files, err := contents(bin)
	if err != nil {
		return err
	}
	if root != "" {
		return writeFolder(root, files)
	}
	image, err := build(files, goos, arch, filepath.Join(bin, "yard"))
	if err != nil {
		return err
	}
	ref, err := name.NewTag(tag)
	if err != nil {
		return err
	}
	return tarball.WriteToFile(out, ref, image)
}

// compile builds the programs into a folder.
func compile(bin, goos, arch string) error {
	args := append([]string{"build", "-trimpath", "-buildvcs=auto", "-ldflags=-s -w", "-o", bin + string(filepath.Separator)}, packages...)
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOOS="+goos, "GOARCH="+arch)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	return cmd.Run()
}

// file is one of the image: a folder, a program, or a text.
type file struct {
	path string
	mode os.FileMode
	uid  int
	data []byte
}

// contents are the files of the image, folders before what is in them.
func contents(bin string) ([]file, error) {
	files := []file{{path: "bin", mode: os.ModeDir | 0o755}}
	for _, p := range packages {
		name := filepath.Base(p)
		data, err := os.ReadFile(filepath.Join(bin, name))
		if err != nil {
			return nil, err
		}
		files = append(files, file{path: "bin/" + name, mode: 0o755, data: data})
	}
	var roots bytes.Buffer
	for root := range bundle.Roots() {
		if err := pem.Encode(&roots, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, err
		}
	}
	return append(
		files,
		file{path: "data", mode: os.ModeDir | 0o700, uid: user},
		file{path: "etc", mode: os.ModeDir | 0o755},
		file{path: "etc/passwd", mode: 0o644, data: fmt.Appendf(nil, "yard:x:%d:%d::/data:/none\n", user, user)},
		file{path: "etc/ssl", mode: os.ModeDir | 0o755},
		file{path: "etc/ssl/certs", mode: os.ModeDir | 0o755},
		file{path: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, data: roots.Bytes()},
	), nil
}

// writeFolder writes the files below a folder. The owner is that of this process.
func writeFolder(root string, files []file) error {
	for _, f := range files {
		path := filepath.Join(root, f.path)
		if f.mode.IsDir() {
			if err := os.MkdirAll(path, f.mode.Perm()); err != nil {
				return err
			}
			continue
		}
		if err := os.WriteFile(path, f.data, f.mode); err != nil {
			return err
		}
	}
	return nil
}

// build makes an image of one layer, whose labels say how the program yard was built.
func build(files []file, goos, arch, yard string) (v1.Image, error) {
	info, err := buildinfo.ReadFile(yard)
	if err != nil {
		return nil, err
	}
	labels := map[string]string{
		"org.opencontainers.image.title":       "Yardmaster",
		"org.opencontainers.image.description": "A durable task engine for many tenants on NATS JetStream and Redis",
		"org.opencontainers.image.source":      "https://github.com/yardmaster-io/yardmaster",
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.version":     info.Main.Version,
	}
	made := time.Unix(0, 0).UTC()
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			labels["org.opencontainers.image.revision"] = s.Value
		case "vcs.time":
			if made, err = time.Parse(time.RFC3339, s.Value); err != nil {
				return nil, err
			}
			labels["org.opencontainers.image.created"] = s.Value
		}
	}
	packed, err := pack(files, made)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed)), nil })
	if err != nil {
		return nil, err
	}
	image, err := mutate.Append(empty.Image, mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: made}, CreatedBy: "infra/tools/image"}})
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = goos, arch, v1.Time{Time: made}
	config.Config = v1.Config{
		User: strconv.Itoa(user), Entrypoint: []string{"/bin/yard"}, WorkingDir: "/data",
		Env: []string{"PATH=/bin"}, Labels: labels, StopSignal: "SIGTERM",
	}
	return mutate.ConfigFile(image, config)
}

// pack makes the tar file of a layer.
func pack(files []file, made time.Time) ([]byte, error) {
	var packed bytes.Buffer
	w := tar.NewWriter(&packed)
	for _, f := range files {
		header := &tar.Header{Name: f.path, Mode: int64(f.mode.Perm()), Uid: f.uid, Gid: f.uid, Size: int64(len(f.data)), ModTime: made, Typeflag: tar.TypeReg}
		if f.mode.IsDir() {
			header.Name, header.Typeflag = f.path+"/", tar.TypeDir
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	return packed.Bytes(), w.Close()
}
