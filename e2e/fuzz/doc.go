// Package fuzz sends mutations of good requests to every endpoint of a running engine, in JSON and in protobuf.
//
// Owns: the mutations, made from the examples of the AsyncAPI document, and what must hold for every answer: there is
// one; it is a good response, or an error whose code is in the closed list and whose body says the same; it fits
// into a message; it is never INTERNAL. And what was refused has stored nothing.
// Never does: know what each mutation should be answered with; the services' own tests do.
//
// YARD_FUZZ says how many mutations each endpoint gets in each encoding, YARD_SEED repeats a run.
package fuzz
