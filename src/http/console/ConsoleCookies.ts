/** The console's own cookies: of its session, and of a sign-in under way. */
import { HttpServerResponse } from "effect/http"
import { consoleCookie } from "../auth/ConsoleAuth.ts"
import { ownCookie } from "../auth/OwnCookies.ts"

type Response = HttpServerResponse.HttpServerResponse

const setCookie = (response: Response, own: ReturnType<typeof ownCookie>, value: string, maxAge: number): Response =>
  HttpServerResponse.setCookieUnsafe(response, own.name, value, { ...own.attributes, sameSite: "lax", maxAge })

/** The cookie of a sign-in under way. */
export const pendingCookie = (publicUrl: URL) => ownCookie(publicUrl, "bailiwick_sign_in", "/console/callback")

/** Sets the cookie of a sign-in under way, for these milliseconds. */
export const withPending = (response: Response, publicUrl: URL, cookie: string, millis: number): Response =>
  setCookie(response, pendingCookie(publicUrl), cookie, millis)

/** Takes it back: it serves one answer of the issuer. */
export const withoutPending = (response: Response, publicUrl: URL): Response =>
  setCookie(response, pendingCookie(publicUrl), "", 0)

/** Sets the session's cookie, for as many milliseconds as the session lasts without a further request. */
export const withSession = (response: Response, publicUrl: URL, cookie: string, millis: number): Response =>
  setCookie(response, consoleCookie(publicUrl), cookie, millis)

/** Takes the session's cookie back. */
export const withoutSession = (response: Response, publicUrl: URL): Response =>
  setCookie(response, consoleCookie(publicUrl), "", 0)
