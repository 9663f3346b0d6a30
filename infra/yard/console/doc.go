// Package console is a web page for people who operate Yardmaster: what waits where, and why, with forms that change it.
//
// Owns: the HTTP server, what protects it, and the configuration of logins, of people and to NATS. Its parts are below internal: pages, forms, load, payload, sampler, login, access, assets.
// Never does: read a stream, a bucket or Redis; it is a client of the public API like any other, with the rights that its logins to NATS have. It stores nothing.
//
// On failure: a page of an error shows the code and the text of the engine. The console can be stopped and started at any time: sessions and open forms end then.
package console
