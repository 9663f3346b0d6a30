package deployment

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/x509"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// within bounds what takes a moment in a healthy run.
const within = 2 * time.Minute

// root is the root of the repository.
const root = "../.."

// services are the programs beside the command.
var services = []string{"frontend", "history", "matching", "timer"}

// folder has what the tests build. It is removed when all have run.
var folder string

func TestMain(m *testing.M) {
	var err error
	if folder, err = os.MkdirTemp("", "yard-deployment-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(folder) // it is temporary
	os.Exit(code)
}

// slow leaves the test out of a quick run. Else it looks through the folders that other programs read for this test, so
// that the go command notices a change there, and does not show a result of before.
func slow(t *testing.T) {
	t.Helper()
	testkit.Slow(t, "builds an image, and tools")
	for _, dir := range []string{"contracts", "infra", "services", "shared"} {
		testkit.NoError(t, filepath.WalkDir(filepath.Join(root, dir), func(_ string, _ fs.DirEntry, err error) error { return err }))
	}
}

// tool builds a program of infra/tools once, and returns its path.
func tool(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(folder, name+"-tool")
	if _, err := os.Stat(path); err == nil {
		return path
	}
	run(t, exec.Command("go", "-C", filepath.Join(root, "infra/tools", name), "build", "-o", path, "."))
	return path
}

// run runs a command that succeeds, and returns its output.
func run(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var failures bytes.Buffer
	cmd.Stderr = &failures
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", cmd, err, out, failures.Bytes())
	}
	return string(out)
}

// refused runs a command that fails, and says why.
func refused(t *testing.T, why string, cmd *exec.Cmd) {
	t.Helper()
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), why) {
		t.Errorf("%s: %v, want %q\n%s", cmd, err, why, out)
	}
}

// settings are the configuration of an image, as far as a container depends on it.
type settings struct {
	User       string
	Entrypoint []string
	WorkingDir string
	Env        []string
	StopSignal string
	Labels     map[string]string
}

// image is what the tests read of an image.
type image struct {
	Architecture, OS string
	Config           settings
	// root is the folder with its files.
	root string
	// owners are the numbers of the users that own files, without those of root.
	owners map[string]int
}

// built is the image of this working tree, for this machine.
var built = sync.OnceValues(func() (*image, error) {
	file, platform := filepath.Join(folder, "image.tar"), "linux/"+runtime.GOARCH
	cmd := exec.Command(filepath.Join(folder, "image-tool"), "--platform", platform, "--tag", "yardmaster:test", "--out", file)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	return readImage(file, filepath.Join(folder, "root"))
})

// theImage is built, and ends the test if it cannot be.
func theImage(t *testing.T) *image {
	t.Helper()
	tool(t, "image")
	i, err := built()
	testkit.NoError(t, err)
	return i
}

// program is the path of a program of the image, on this machine.
func (i *image) program(name string) string { return filepath.Join(i.root, "bin", name) }

// readImage reads a file as `docker save` writes it, and extracts its layers.
func readImage(file, to string) (*image, error) {
	parts, err := readArchive(file)
	if err != nil {
		return nil, err
	}
	var manifest []struct {
		Config string
		Layers []string
	}
	if err := json.Unmarshal(parts["manifest.json"], &manifest); err != nil || len(manifest) != 1 {
		return nil, fmt.Errorf("manifest of %d images: %w", len(manifest), err)
	}
	i := &image{root: to, owners: map[string]int{}}
	if err := json.Unmarshal(parts[manifest[0].Config], i); err != nil {
		return nil, err
	}
	for _, layer := range manifest[0].Layers {
		packed, err := gzip.NewReader(bytes.NewReader(parts[layer]))
		if err != nil {
			return nil, err
		}
		if err := i.extract(tar.NewReader(packed)); err != nil {
			return nil, err
		}
	}
	return i, nil
}

func readArchive(file string) (map[string][]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	parts, r := map[string][]byte{}, tar.NewReader(f)
	for {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return parts, nil
		}
		if err != nil {
			return nil, err
		}
		if parts[header.Name], err = io.ReadAll(r); err != nil {
			return nil, err
		}
	}
}

func (i *image) extract(r *tar.Reader) error {
	for {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		path := filepath.Join(i.root, filepath.FromSlash(header.Name))
		if header.Uid != 0 {
			i.owners[header.Name] = header.Uid
		}
		if header.Typeflag == tar.TypeDir {
			err = os.MkdirAll(path, 0o755)
		} else {
			var data []byte
			if data, err = io.ReadAll(r); err == nil {
				err = os.WriteFile(path, data, header.FileInfo().Mode())
			}
		}
		if err != nil {
			return err
		}
	}
}

// TestTheImage: static programs that run, roots of certificates, a user without rights, and nothing else.
func TestTheImage(t *testing.T) {
	slow(t)
	i := theImage(t)
	testkit.Equal(t, "platform", i.OS+"/"+i.Architecture, "linux/"+runtime.GOARCH)
	testkit.Equal(t, "user", i.Config.User, "65532")
	testkit.Equal(t, "entry point", i.Config.Entrypoint, []string{"/bin/yard"})
	testkit.Equal(t, "files of others than root", i.owners, map[string]int{"data/": 65532})
	for _, label := range []string{"title", "description", "source", "licenses", "version"} {
		if i.Config.Labels["org.opencontainers.image."+label] == "" {
			t.Errorf("there is no label %s: %v", label, i.Config.Labels)
		}
	}
	names, err := os.ReadDir(filepath.Join(i.root, "bin"))
	testkit.NoError(t, err)
	testkit.Equal(t, "programs", len(names), 1+len(services))
	for _, entry := range names {
		f, err := elf.Open(i.program(entry.Name()))
		testkit.NoError(t, err)
		for _, part := range f.Progs {
			if part.Type == elf.PT_INTERP {
				t.Errorf("%s needs a dynamic linker", entry.Name())
			}
		}
		testkit.Check(t, f.Close())
		run(t, exec.CommandContext(t.Context(), i.program(entry.Name()), "--help"))
	}
	pem, err := os.ReadFile(filepath.Join(i.root, "etc/ssl/certs/ca-certificates.crt"))
	testkit.NoError(t, err)
	if !x509.NewCertPool().AppendCertsFromPEM(pem) {
		t.Error("there are no root certificates")
	}
}

// TestTheDockerfileMakesTheSameImage: its last stage has the settings of the image, and its first one the files.
func TestTheDockerfileMakesTheSameImage(t *testing.T) {
	slow(t)
	text, err := os.ReadFile(filepath.Join(root, "infra/image/Dockerfile"))
	testkit.NoError(t, err)
	first, last, ok := strings.Cut(strings.ReplaceAll(string(text), "\\\n", ""), "\nFROM scratch\n")
	if !ok || !strings.Contains(first, "infra/tools/image") {
		t.Fatalf("it has other stages:\n%s", text)
	}
	want := theImage(t).Config
	want.Labels = maps.Clone(want.Labels)
	got := settings{Labels: map[string]string{}}
	for line := range strings.Lines(last) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word {
		case "USER":
			got.User = rest
		case "WORKDIR":
			got.WorkingDir = rest
		case "STOPSIGNAL":
			got.StopSignal = rest
		case "ENV":
			got.Env = append(got.Env, rest)
		case "ENTRYPOINT":
			testkit.NoError(t, json.Unmarshal([]byte(rest), &got.Entrypoint))
		case "LABEL":
			for _, label := range regexp.MustCompile(`(\S+)="([^"]*)"`).FindAllStringSubmatch(rest, -1) {
				got.Labels[label[1]] = label[2]
			}
		case "COPY":
		default:
			t.Errorf("the last stage has %q", line)
		}
	}
	for _, ofTheBuild := range []string{"version", "revision", "created"} {
		delete(want.Labels, "org.opencontainers.image."+ofTheBuild)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the Dockerfile has %+v, the image %+v", got, want)
	}
	dir := t.TempDir()
	cmd := exec.Command(tool(t, "image"), "--platform", "linux/"+runtime.GOARCH, "--root", dir)
	cmd.Dir = root
	run(t, cmd)
	for _, path := range []string{"bin/yard", "etc/passwd", "etc/ssl/certs/ca-certificates.crt"} {
		first, err := os.ReadFile(filepath.Join(theImage(t).root, path))
		testkit.NoError(t, err)
		second, err := os.ReadFile(filepath.Join(dir, path))
		testkit.NoError(t, err)
		if !bytes.Equal(first, second) {
			t.Errorf("%s differs from that of the image", path)
		}
	}
}
