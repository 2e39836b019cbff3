/**
 * Cookies that this program makes and reads itself; `mail_session` is its issuers' and keeps its name.
 *
 * Where browsers know us by https the name begins with `__Host-`, so that no other host of the domain and no page over
 * plain http can set such a cookie (RFC 6265bis, 4.1.3.2); it then has the path `/`. Over plain http, as on loopback, a
 * browser refuses that name and `Secure` alike: there the plain name stands, with the path that needs it.
 */
export const ownCookie = (publicUrl: URL, name: string, path: string) =>
  publicUrl.protocol === "https:"
    ? { name: `__Host-${name}`, attributes: { httpOnly: true, secure: true, path: "/" } }
    : { name, attributes: { httpOnly: true, path } }
