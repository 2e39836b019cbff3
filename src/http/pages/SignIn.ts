/**
 * Leads to the sign-in page and back. The link's path holds a token and must not leave this site, so the token waits in
 * a cookie of ours, and the sign-in page gets only an opaque `state`. The sign-in page sends the person back to
 * `/transfers/resume?state=…`, which works for ten minutes, in the same browser.
 */
import { Effect } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { type Html, html } from "../../../services/platform/mail/Html.ts"
import { refusing } from "../edge/RequestOutcome.ts"
import { returnCookie } from "./ReturnCookie.ts"
import { page, saying } from "./TransferPage.ts"

export interface SignInOptions {
  /** The origin under which browsers reach this program. */
  readonly publicUrl: URL
  /** The sign-in page; null: none is configured. */
  readonly signInUrl: URL | null
}

const waiting = (publicUrl: URL) => returnCookie(publicUrl, "bailiwick_return", "/transfers")

export interface Asking {
  readonly title: string
  /** The text above the request to sign in. */
  readonly about: Html
  readonly status: number
  /** The code in the audit, where the status is a failure's. */
  readonly code: string
  /** The account that the offer is for, masked. */
  readonly meant: string
  /** The token of the link, which exists. */
  readonly token: string
}

/** Asks a person to sign in, or to sign in to another account. */
export const askToSignIn = (
  { publicUrl, signInUrl }: SignInOptions,
  { about, code, meant, status, title, token }: Asking,
): Effect.Effect<HttpServerResponse.HttpServerResponse> => {
  const ask = html`To accept or decline it, sign in to the account that the email was sent to, <bdi>${meant}</bdi>`
  if (signInUrl === null) {
    const body = html`${about}<p>${ask}; then open the link again.</p>`
    return refusing(code, page({ title, status, body }))
  }
  const cookie = waiting(publicUrl)
  const state = cookie.newState()
  const href = new URL(signInUrl)
  href.searchParams.set("state", state)
  const body = html`${about}<p>${ask}.</p>
<p><a class="button" href="${href.href}">Sign in</a></p>`
  return refusing(code, cookie.keep(page({ title, status, body }), state, token))
}

/** `GET /transfers/resume?state=…`. */
export const resume = (publicUrl: URL) =>
  Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) => {
    const cookie = waiting(publicUrl)
    const token = cookie.take(request)
    if (token === null) {
      return refusing(
        "malformed_request",
        saying(
          "Open the link again",
          "The sign-in took too long, or began in another browser: open the link in your email again.",
          400,
        ),
      )
    }
    const back = HttpServerResponse.empty({
      status: 303,
      headers: { location: `/transfers/accept/${token}`, "cache-control": "no-store" },
    })
    return Effect.succeed(cookie.clear(back))
  })
