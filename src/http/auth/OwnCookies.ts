/**
 * Cookies that this program sets and reads itself. `mail_session` belongs to the issuers and keeps its name.
 *
 * Where PUBLIC_URL is https the name begins with `__Host-`, so that no other host of the domain and no page over plain
 * http can set such a cookie (RFC 6265bis, 4.1.3.2); it then has the path `/`. Over plain http, as on loopback,
 * browsers refuse that prefix and `Secure`: the cookie then has its plain name, and the path that needs it.
 */
export const ownCookie = (publicUrl: URL, name: string, path: string) =>
  publicUrl.protocol === "https:"
    ? { name: `__Host-${name}`, attributes: { httpOnly: true, secure: true, path: "/" } }
    : { name, attributes: { httpOnly: true, path } }
