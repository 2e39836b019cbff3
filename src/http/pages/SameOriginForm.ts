/**
 * Whether a POST comes from a form of our own pages. The pages set `no-referrer`, which makes browsers send `Origin:
 * null` (Fetch, "append a request Origin header"); browsers still identify our own form in `Sec-Fetch-Site`, which no
 * page can forge.
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
