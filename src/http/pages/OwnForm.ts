/**
 * Whether a POST comes from a form of our own pages. They say `no-referrer`, which makes browsers write `Origin: null`
 * on it (Fetch, "append a request Origin header"); that it is our own they still say in `Sec-Fetch-Site`, which no page
 * can forge.
 */
import { Headers, type HttpServerRequest } from "effect/http"
import { passesCsrf } from "../auth/Csrf.ts"

export const isOwnForm = (
  { headers, method }: Pick<HttpServerRequest.HttpServerRequest, "headers" | "method">,
  publicUrl: URL,
): boolean => {
  const isHidden = headers["origin"] === "null" && headers["sec-fetch-site"] === "same-origin"
  return passesCsrf({ method, headers: isHidden ? Headers.remove(headers, "origin") : headers }, publicUrl)
}
