package settings

import (
	"cmp"
	"fmt"
	"io"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Print writes cfg as a YAML file in the order of its fields, with secrets masked.
// Load reads it back to the same settings, secrets apart.
func Print[T any](w io.Writer, cfg T) error {
	s := newSchema("", reflect.TypeFor[T]())
	root := reflect.ValueOf(&cfg).Elem()
	doc := &yaml.Node{Kind: yaml.MappingNode}
	for i := range s.fields {
		f := &s.fields[i]
		words := strings.Split(f.path, ".")
		at := doc
		for _, word := range words[:len(words)-1] {
			at = mappingAt(at, word)
		}
		addKey(at, words[len(words)-1], f.node(root.FieldByIndex(f.index)))
	}
	enc := yaml.NewEncoder(w)
	enc.SetIndent(2)
	if err := enc.Encode(doc); err != nil {
		return fmt.Errorf("print the settings: %w", err)
	}
	return enc.Close()
}

// node is the value as YAML: strings quoted where they must be, the rest bare.
func (f *field) node(v reflect.Value) *yaml.Node {
	if f.isList() && !f.secret {
		list := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for i := range v.Len() {
			list.Content = append(list.Content, scalar(f.shown(v.Index(i).String()), true))
		}
		return list
	}
	return scalar(f.format(v), v.Kind() == reflect.String)
}

func scalar(text string, isText bool) *yaml.Node {
	node := &yaml.Node{Kind: yaml.ScalarNode, Value: text}
	if isText {
		node.SetString(text) // quotes "true" and "12", which would be read as something else
	}
	return node
}

// mappingAt returns the mapping below a key, and makes it if it is not there.
func mappingAt(at *yaml.Node, key string) *yaml.Node {
	for i := 0; i < len(at.Content); i += 2 {
		if at.Content[i].Value == key {
			return at.Content[i+1]
		}
	}
	below := &yaml.Node{Kind: yaml.MappingNode}
	addKey(at, key, below)
	return below
}

func addKey(at *yaml.Node, key string, value *yaml.Node) {
	at.Content = append(at.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: key}, value)
}

// Usage writes the text of --help: how settings are given, and every one with its
// names, meaning and default.
func Usage[T any](w io.Writer, name string, def T) error {
	s := newSchema(name, reflect.TypeFor[T]())
	root := reflect.ValueOf(&def).Elem()
	var text strings.Builder
	fmt.Fprintf(&text, `Settings of %s. Flags win over variables, variables over the file, the file over
the defaults. In the file, a.b is b in the section a, with underscores for dashes.

  --%s FILE, %s%s
      the YAML file; none by default
  --%s
      print the settings in force and exit
  --%s, -h
      print this and exit
`, name, flagConfig, s.prefix, envConfig, flagPrint, flagHelp)
	for i := range s.fields {
		f := &s.fields[i]
		fmt.Fprintf(&text, "  --%s, %s\n      %s (%s)\n", f.flag, f.env, cmp.Or(f.usage, f.want()), f.defaultText(root))
	}
	_, err := io.WriteString(w, text.String())
	return err
}

func (f *field) defaultText(root reflect.Value) string {
	text := f.format(root.FieldByIndex(f.index))
	if text == "" {
		return "empty by default"
	}
	return "default " + text
}
