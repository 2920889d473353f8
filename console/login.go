package console

import (
	"errors"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"
)

var (
	errSignIn  = errors.New("sign in first")
	errWrong   = errors.New("the name or the password is wrong")
	errTooMany = errors.New("too many attempts: wait half a minute")
)

// loginPage is the page that asks for a name and a password.
type loginPage struct {
	Err        error
	Name, Next string
}

// handleLogin adds the addresses with which people sign in and out.
func (s *console) handleLogin(mux *http.ServeMux) {
	mux.HandleFunc("GET /login", func(w http.ResponseWriter, r *http.Request) {
		s.showLogin(w, r, http.StatusOK, loginPage{Next: ownPage(r.FormValue("next"))})
	})
	mux.HandleFunc("POST /login", s.login)
	mux.HandleFunc("POST /logout", func(w http.ResponseWriter, r *http.Request) {
		s.sessions.signOut(r)
		http.SetCookie(w, &http.Cookie{Name: sessionCookie, MaxAge: -1, HttpOnly: true, Secure: encrypted(r), SameSite: http.SameSiteStrictMode})
		redirect(w, "login")
	})
}

func (s *console) showLogin(w http.ResponseWriter, r *http.Request, status int, p loginPage) {
	v := &view{console: s, request: r, template: "login", Path: r.URL.Path, Title: "Sign in", Data: p}
	v.show(r.Context(), w, status)
}

// login begins a session, and leads to the page that the person asked for.
func (s *console) login(w http.ResponseWriter, r *http.Request) {
	name, next := r.PostFormValue("name"), ownPage(r.PostFormValue("next"))
	value, expires, err := s.sessions.signIn(r, name, r.PostFormValue("password"))
	switch {
	case errors.Is(err, errTooMany):
		w.Header().Set("Retry-After", "30")
		s.showLogin(w, r, http.StatusTooManyRequests, loginPage{err, name, next})
		return
	case err != nil:
		s.showLogin(w, r, http.StatusForbidden, loginPage{err, name, next})
		return
	}
	http.SetCookie(w, &http.Cookie{
		Name: sessionCookie, Value: value, Expires: expires, MaxAge: int(time.Until(expires).Seconds()),
		HttpOnly: true, Secure: encrypted(r), SameSite: http.SameSiteStrictMode,
	})
	redirect(w, next)
}

// redirect leads to another page with a GET. http.Redirect would make the address absolute, without the prefix below which
// the console is mounted.
func redirect(w http.ResponseWriter, address string) {
	w.Header().Set("Location", address)
	w.WriteHeader(http.StatusSeeOther)
}

// encrypted reports whether the browser speaks TLS, to this process or to a proxy in front.
func encrypted(r *http.Request) bool {
	return r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https"
}

// ownPage returns the address if it is one of a page of the console, and the first page otherwise. A link to the login must
// not lead to another site.
func ownPage(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.IsAbs() || u.Host != "" || u.User != nil || u.Opaque != "" {
		return "./"
	}
	page := u.EscapedPath()
	if rest, inside := strings.CutPrefix(page, "in/"); inside {
		_, page, _ = strings.Cut(rest, "/")
	}
	if pages["/"+page].template == "" {
		return "./"
	}
	if u.RawQuery != "" {
		return u.EscapedPath() + "?" + u.RawQuery
	}
	return u.EscapedPath()
}

// askToSignIn leads a person to the page where they sign in, and from there back. Programs get the status 401.
func (v *view) askToSignIn(w http.ResponseWriter) {
	if formatOf(v.request) != formatHTML {
		http.Error(w, errSignIn.Error(), http.StatusUnauthorized)
		return
	}
	if v.request.Method != http.MethodGet { // nothing of the form is done
		redirect(w, v.root+"login")
		return
	}
	next := path.Base(v.request.URL.Path)
	if v.root != "" {
		next = "in/" + url.PathEscape(v.OwnSign()) + "/" + next
	}
	if v.request.URL.RawQuery != "" {
		next += "?" + v.request.URL.RawQuery
	}
	redirect(w, v.root+"login?next="+url.QueryEscape(next))
}
