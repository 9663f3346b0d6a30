package install

import (
	"archive/zip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

// repository is the path of the module at the root; those of the others begin with it.
const repository = "github.com/yardmaster-io/yardmaster"

// root is the repository's folder.
const root = "../.."

// published is a module of the repository at the version that the others require.
type published struct {
	Path, Version string
	dir           string // below root
}

// readModules returns the modules of the workspace. All have one version, that of the
// replace lines in go.work.
func readModules() ([]published, error) {
	out, err := exec.Command("go", "work", "edit", "-json", filepath.Join(root, "go.work")).Output()
	if err != nil {
		return nil, fmt.Errorf("read go.work: %w", err)
	}
	var work struct {
		Use     []struct{ DiskPath string }
		Replace []struct{ Old struct{ Version string } }
	}
	if err := json.Unmarshal(out, &work); err != nil {
		return nil, err
	}
	if len(work.Replace) == 0 {
		return nil, errors.New("go.work has no replace line, and so no version")
	}
	modules := make([]published, len(work.Use))
	for i, use := range work.Use {
		modules[i] = published{path.Join(repository, use.DiskPath), work.Replace[0].Old.Version, use.DiskPath}
	}
	return modules, nil
}

// newProxy makes the folder. Its layout is that of https://go.dev/ref/mod#goproxy-protocol.
func newProxy(dir string, modules []published) error {
	for _, m := range modules {
		at := filepath.Join(dir, filepath.FromSlash(m.Path), "@v")
		if err := os.MkdirAll(at, 0o755); err != nil {
			return err
		}
		mod, err := os.ReadFile(filepath.Join(root, m.dir, "go.mod"))
		if err != nil {
			return err
		}
		for name, text := range map[string]string{
			"list":              m.Version + "\n",
			m.Version + ".info": fmt.Sprintf(`{"Version":%q}`, m.Version),
			m.Version + ".mod":  string(mod),
		} {
			if err := os.WriteFile(filepath.Join(at, name), []byte(text), 0o644); err != nil {
				return err
			}
		}
		if err := m.pack(filepath.Join(at, m.Version+".zip")); err != nil {
			return fmt.Errorf("pack %s: %w", m.Path, err)
		}
	}
	return nil
}

// pack writes the module's archive: its files, without those of modules below.
func (m published) pack(to string) error {
	file, err := os.Create(to)
	if err != nil {
		return err
	}
	archive := zip.NewWriter(file)
	from := filepath.Join(root, m.dir)
	err = filepath.WalkDir(from, func(p string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch {
		case entry.IsDir() && p != from && skipped(p, entry.Name()):
			return filepath.SkipDir
		case !entry.Type().IsRegular():
			return nil
		}
		rel, err := filepath.Rel(from, p)
		if err != nil {
			return err
		}
		return add(archive, m.Path+"@"+m.Version+"/"+filepath.ToSlash(rel), p)
	})
	return errors.Join(err, archive.Close(), file.Close())
}

// skipped folders are modules of their own, or hold nothing that is in a tag.
func skipped(dir, name string) bool {
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
		return true
	}
	return strings.HasPrefix(name, ".") || name == "node_modules" || name == "bin" || name == "data"
}

func add(archive *zip.Writer, name, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // only read
	out, err := archive.Create(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return err
}
