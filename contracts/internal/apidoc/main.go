// Command apidoc writes the API reference: asyncapi.json, for programs,
// API.md, for people who write a client in another language, and node/api.d.ts,
// its types for TypeScript.
//
// Owns: how the .proto files, their comments, the list of fault codes and the
// examples (endpoints.go) become those documents. What a field means stands
// in its comment and nowhere else; ranges and defaults are read from there.
//
// Never does: invent. A message without a comment, or an endpoint without an
// example, is an error.
//
// On failure: nothing is written. It is run by proto/generate.sh:
//
//	apidoc -descriptors set.pb -codes fault/codes.go -out .
package main

import (
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
	async, err := asyncAPI(api)
	if err != nil {
		return err
	}
	page, err := markdown(api)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(out, "asyncapi.json"), async, 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(out, "node", "api.d.ts"), typescript(api), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, "API.md"), page, 0o644)
}
