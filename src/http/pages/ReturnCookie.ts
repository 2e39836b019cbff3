/**
 * Keeps a link's token while its visitor signs in: the path holds the token, which must be in no address that other
 * pages see. It waits in a cookie for ten minutes, and the sign-in returns with an opaque `state`.
 */
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { randomBytes } from "node:crypto"
import { ownCookie } from "../auth/OwnCookies.ts"

type Response = HttpServerResponse.HttpServerResponse

const kept = /^([A-Za-z0-9_-]{22})\.([A-Za-z0-9_-]{1,128})$/

/** The cookie of this name, for pages below `path`. */
export const returnCookie = (publicUrl: URL, name: string, path: string) => {
  const cookie = ownCookie(publicUrl, name, path)
  const set = (response: Response, value: string, seconds: number) =>
    HttpServerResponse.setCookieUnsafe(response, cookie.name, value, {
      ...cookie.attributes,
      sameSite: "lax",
      maxAge: seconds * 1_000,
    })
  return {
    newState: () => randomBytes(16).toString("base64url"),
    keep: (response: Response, state: string, token: string) => set(response, `${state}.${token}`, 600),
    /** The token that waits for the request's `state`; null where none does. */
    take: ({ cookies, url }: HttpServerRequest.HttpServerRequest): string | null => {
      const [, state, token] = kept.exec(cookies[cookie.name] ?? "") ?? []
      return token !== undefined && state === new URL(url, publicUrl).searchParams.get("state") ? token : null
    },
    clear: (response: Response) => set(response, "", 0),
  }
}
