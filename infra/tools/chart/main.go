// Command chart checks a Helm chart, and prints the objects that it makes:
//
//	chart [--values FILE]... FOLDER
//
// It does what `helm lint --strict` and `helm template` do, by the same library, and decodes each object into the type
// of the Kubernetes API, or of the Prometheus operator. A field that the type does not have is an error, so no cluster
// and no download of schemas is necessary.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	"helm.sh/helm/v3/pkg/releaseutil"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/client-go/kubernetes/scheme"
)

// release and namespace are those of the objects that are printed.
const release, namespace = "yard", "yardmaster"

func main() {
	var files []string
	flag.Func("values", "file of values, repeated: later ones win", func(name string) error {
		files = append(files, name)
		return nil
	})
	flag.Parse()
	if err := run(flag.Args(), files); err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
}

func run(args, files []string) error {
	if len(args) != 1 {
		return errors.New("want the folder of one chart")
	}
	values, err := read(files)
	if err != nil {
		return err
	}
	if err := linted(args[0], values); err != nil {
		return err
	}
	rendered, err := render(args[0], values)
	if err != nil {
		return err
	}
	if err := monitoring.AddToScheme(scheme.Scheme); err != nil {
		return err
	}
	decoder := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, json.SerializerOptions{Yaml: true, Strict: true})
	for _, name := range slices.Sorted(maps.Keys(rendered)) {
		if strings.HasSuffix(name, chartutil.NotesName) {
			continue
		}
		objects := releaseutil.SplitManifests(rendered[name])
		for _, key := range slices.SortedFunc(maps.Keys(objects), func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) }) {
			if _, _, err := decoder.Decode([]byte(objects[key]), nil, nil); err != nil {
				return fmt.Errorf("%s: %w\n%s", name, err, objects[key])
			}
			fmt.Printf("---\n# Source: %s\n%s\n", name, objects[key])
		}
	}
	return nil
}

// read merges files of values.
func read(files []string) (map[string]any, error) {
	all := map[string]any{}
	for _, name := range files {
		values, err := chartutil.ReadValuesFile(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = chartutil.MergeTables(values, all)
	}
	return all, nil
}

// linted is `helm lint --strict`: a warning is an error.
func linted(folder string, values map[string]any) error {
	var found []error
	for _, m := range lint.All(folder, values, namespace, true).Messages {
		if m.Severity >= support.WarningSev {
			found = append(found, m)
		}
	}
	return errors.Join(found...)
}

// render is `helm template`: the text of each template by its name.
func render(folder string, values map[string]any) (map[string]string, error) {
	chart, err := loader.Load(folder)
	if err != nil {
		return nil, err
	}
	options := chartutil.ReleaseOptions{Name: release, Namespace: namespace, Revision: 1, IsInstall: true}
	all, err := chartutil.ToRenderValues(chart, values, options, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	return engine.Render(chart, all)
}
