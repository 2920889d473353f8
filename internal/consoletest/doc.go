// Package consoletest looks at the console with a browser: real workers on real databases, and Debian's chromium. It is a
// module of its own, so that chromedp does not get into the go.sum of users.
//
// The tests fail for an error on the browser's console and for a violation of the Content-Security-Policy. With
// -artifacts they leave a screenshot of every page at 360, 1280 and 1920 pixels.
package consoletest
