package backup

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/filelock"
)

// manifestName is the file that makes a folder a backup.
const manifestName = "manifest.json"

// form is the version of the folder's form.
const form = 1

// Manifest says what a backup has.
type Manifest struct {
	Form int       `json:"form"`
	Time time.Time `json:"time"`
	// NATSCluster is the name of the cluster of NATS, empty if it is a single server.
	NATSCluster string `json:"nats_cluster,omitempty"`
	NATSVersion string `json:"nats_version"`
	YardVersion string `json:"yard_version"`
	// LogVersion is the log version that the cluster writes.
	LogVersion uint32 `json:"log_version"`
	topology.Partitioning
	// Streams are in the order in which they are restored.
	Streams []Stream `json:"streams"`
}

// Stream is the copy of one stream.
type Stream struct {
	Name     string `json:"name"`
	FirstSeq uint64 `json:"first_seq"`
	LastSeq  uint64 `json:"last_seq"`
	Messages uint64 `json:"messages"`
	Bytes    uint64 `json:"bytes"`
	// FileBytes and SHA256 are of the file, which is compressed.
	FileBytes int64  `json:"file_bytes"`
	SHA256    string `json:"sha256"`
	// Config is the configuration of the stream, as the server wrote it.
	Config json.RawMessage `json:"config"`
}

// file is the path of the stream's file.
func (s *Stream) file(dir string) string { return filepath.Join(dir, s.Name+".snapshot") }

// read reads the manifest of a folder, and checks that it names all streams of its cluster.
func read(dir string) (*Manifest, error) {
	data, err := os.ReadFile(filepath.Join(dir, manifestName))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fault.New(fault.FailedPrecondition, "%s is no backup, or an unfinished one: it has no %s", dir, manifestName)
	}
	if err != nil {
		return nil, err
	}
	m := &Manifest{}
	if err := json.Unmarshal(data, m); err != nil {
		return nil, fault.New(fault.FailedPrecondition, "%s of %s: %v", manifestName, dir, err)
	}
	if m.Form != form {
		return nil, fault.New(fault.FailedPrecondition, "%s has form %d, this program reads form %d", dir, m.Form, form)
	}
	var names []string
	for _, s := range m.Streams {
		names = append(names, s.Name)
	}
	if want := topology.Stored(m.Partitioning); !slices.Equal(names, want) {
		return nil, fault.New(fault.FailedPrecondition, "%s of %s names the streams %v, the cluster has %v", manifestName, dir, names, want)
	}
	return m, nil
}

// write makes the folder a backup. Everything else in it is on disk by then.
func (m *Manifest) write(dir string) error {
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	if err := syncFolder(dir); err != nil {
		return err
	}
	if err := filelock.Replace(filepath.Join(dir, manifestName), append(data, '\n')); err != nil {
		return err
	}
	return syncFolder(dir)
}

// syncFolder has the names of a folder's files on disk.
func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Verify checks the files of a backup against its manifest, and calls verified for each that fits.
func Verify(dir string, verified func(Stream)) (*Manifest, error) {
	m, err := read(dir)
	if err != nil {
		return nil, err
	}
	for _, s := range m.Streams {
		n, sum, err := digest(s.file(dir))
		if err != nil {
			return nil, err
		}
		if n != s.FileBytes || sum != s.SHA256 {
			return nil, fault.New(fault.FailedPrecondition, "%s is damaged: it has %d bytes and SHA-256 %s, the manifest says %d and %s", s.file(dir), n, sum, s.FileBytes, s.SHA256)
		}
		verified(s)
	}
	return m, nil
}

func digest(name string) (bytes int64, sum string, err error) {
	f, err := os.Open(name)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = f.Close() }() // it was only read
	hash := sha256.New()
	bytes, err = io.Copy(hash, f)
	return bytes, hex.EncodeToString(hash.Sum(nil)), err
}
