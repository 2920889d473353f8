// Package console serves web pages that show a roster, and change it: who owns which queue, what is late, what fails,
// and what a change would do.
//
//	h, err := console.Handler(c, console.Options{})
//	...
//	mux.Handle("/rota/", http.StripPrefix("/rota", h))
//
// All links are relative, so that the handler works below any path that ends with a slash. The pages show what the
// commands of package main show, read through the same bundles of package ops. Each list is also there as JSON and
// CSV: at the same address with ?format=json or ?format=csv, or by the Accept header.
//
// # From an address to a page
//
// The table pages names, for each address, its template and the function that makes its content. That function gets a
// viewer, which reads the roster as far as the actor of the request may look, and the query of the address; it
// returns the content: a title, the data of the template, and the records for JSON and CSV. The view then adds what
// the top of each page shows and sends the page. So what a page says is in one function, and only the view writes to
// the client.
//
// # One read for all viewers
//
// The pages read through a cache that all viewers share. The result of a query serves them for two seconds, and for
// five in a roster of more than 1,000 queues. Viewers that need the same data then wait for the same query, so that
// what viewers cost the database does not grow with their number. A page is as old as its oldest part, and says so. An
// earlier cache let queries rest for minutes while a small query said that nothing had changed. It was cheaper, but
// failed items did not change that query's result, and the page said "1 s old" beside a list of five minutes ago.
//
// The cache holds the 256 results that were used last. A list has at most 1,000 rows.
//
// A page waits half a second for all its queries together, and then shows what it knows. A query goes on without it,
// for the next update: it may take thirty seconds, and the checks of the doctor, which are more than a hundred
// statements, three minutes. A part that has never been read says "Checking". One that is older than ten seconds, or
// older than a change, says its age. If the query has failed, it says why, and since when. An earlier version let a
// query take a second, and answered 503 without its result: with a second of latency nobody ever saw a page. Not known
// is a state of its own: no page says of it that there is nothing, or that nothing is wrong. JSON and CSV have no place
// for that, so that they wait for their rows, or fail.
//
// # Changes
//
// Each change is a verb of package verbs, with an address of its own. A GET shows what it would do and asks, a POST
// with confirm=yes does it, and the page after it says what was done. The verb names the right that it needs; the rest
// follows from it: the check on the server, the form, and the test of all refusals. A change of very many items takes
// several requests: each request tells the next one how far the change has come. Work in the background was rejected:
// it would go on after the person has left, and end with the process.
//
// # Updates
//
// Pages work without a script. With the script, a page fetches itself every two seconds while it is visible, and merges
// what has changed into the document. Times are absolute, and the script writes the ages, so that a page on which
// nothing happened has the same ETag and is not sent again. Polling needs nothing of a middleware in front. A stream
// of server-sent events would need http.Flusher all the way.
//
// # Security
//
// Without Options.Access the console serves only clients on the same host, which may look and change nothing. It
// refuses requests whose Host is not this host, because a web page could reach it under a name of its own (DNS
// rebinding), and requests that a proxy has forwarded, because the client is elsewhere then. Passwords makes people
// sign in by HTTP Basic, and Proxy trusts the name that a proxy tells. There are no sessions. An earlier version had
// them, in 412 lines: any client could reset their limit of attempts, and they kept names of 1 MB. The
// Content-Security-Policy allows nothing but the console's own style sheet and scripts. There is no inline script, and
// html/template escapes all that is read from the database.
package console
