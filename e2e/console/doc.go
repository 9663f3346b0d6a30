// Package console opens every page of the console in a real browser.
//
// Owns: what only a browser shows: contrast, labels, narrow screens, keys, streams, and that nothing breaks the content security policy. Never does: check
// what a page says; the console's own tests do. On failure: each finding names the page, the width and the palette. Without Chromium the tests are skipped.
//
// With YARD_SCREENSHOTS=FOLDER it writes pictures of each page there: wide and narrow, light and dark.
package console
