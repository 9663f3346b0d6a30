// Command apidoc writes the API reference: asyncapi.json, for programs,
// API.md, for people who write a client in another language, and node/api.d.ts,
// its types for TypeScript.
//
// Owns: how the .proto files, their comments, the list of fault codes and endpoints.txt (examples and notes of each
// verb) become those documents, by a template each. The meaning of a field stands in its comment and nowhere else;
// ranges and defaults are read from there.
//
// Never does: invent. A request without an endpoint is an error.
//
// On failure: nothing is written. It is run by proto/generate.sh:
//
//	apidoc -descriptors set.pb -codes fault/codes.go -out .
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	descriptors := flag.String("descriptors", "", "what protoc --descriptor_set_out --include_source_info wrote")
	codesFile := flag.String("codes", "fault/codes.go", "the Go file with the fault codes")
	out := flag.String("out", ".", "directory of the documents")
	flag.Parse()
	if err := run(*descriptors, *codesFile, *out); err != nil {
		fmt.Fprintln(os.Stderr, "apidoc:", err)
		os.Exit(1)
	}
}

func run(descriptors, codesFile, out string) error {
	set, err := os.ReadFile(descriptors)
	if err != nil {
		return err
	}
	api, err := readAPI(set)
	if err != nil {
		return err
	}
	if api.codes, err = readCodes(codesFile); err != nil {
		return err
	}
	async, err := api.asyncAPI()
	if err != nil {
		return err
	}
	page, err := api.render("page.md.tmpl")
	if err != nil {
		return err
	}
	types, err := api.render("api.d.ts.tmpl")
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(out, "asyncapi.json"), async, 0o644),
		os.WriteFile(filepath.Join(out, "node", "api.d.ts"), types, 0o644),
		os.WriteFile(filepath.Join(out, "API.md"), page, 0o644))
}
