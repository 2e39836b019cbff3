/**
 * `/dev/sign-in`, with DEMO only: signs a visitor with the dev key in as any demo account. It takes the place of
 * MAIL_SIGN_IN_URL, and returns to a mailed link in the same way.
 */
import { Effect, Layer } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { sessionCookie } from "../../../schemas/api/CredentialsApi.ts"
import { html } from "../../../services/platform/mail/Html.ts"
import { demoAccounts } from "../../embedded/DemoDirectory.ts"
import { EmbeddedIssuer } from "../../embedded/EmbeddedIssuer.ts"
import { guarded } from "./DevKey.ts"
import { page } from "./DevPage.ts"
import { readText } from "../edge/Body.ts"
import { refusing } from "../edge/RequestOutcome.ts"
import { isOwnForm } from "../pages/SameOriginForm.ts"

export const devSignInPath = "/dev/sign-in"

/** The `state` of a mailed link's page; null for any other text. */
const stateOf = (text: string | null) => text !== null && /^[A-Za-z0-9_-]{22}$/.test(text) ? text : null

const choose = Effect.map(HttpServerRequest.HttpServerRequest, ({ url }) => {
  const state = stateOf(new URL(url, "http://localhost").searchParams.get("state"))
  const kept = state === null ? null : html`<input type="hidden" name="state" value="${state}">`
  return page({
    title: "Sign in as",
    body: html`
      <form method="post" action="${devSignInPath}">${kept}
      ${demoAccounts.map(({ email, id, name }) =>
        html`
          <p><button name="account" value="${id}">${name}, ${email}</button></p>
        `
      )}</form>
    `,
  })
})

const enter = (publicUrl: URL) =>
  Effect.gen(function* () {
    const { mintSession } = yield* EmbeddedIssuer
    const request = yield* HttpServerRequest.HttpServerRequest
    if (!isOwnForm(request, publicUrl)) {
      const body = html`<p>This did not come from our page.</p>`
      return yield* refusing("csrf_rejected", page({ status: 403, title: "Nothing was changed", body }))
    }
    const fields = new URLSearchParams(yield* readText(request))
    const account = demoAccounts.find(({ id }) => id === fields.get("account"))
    if (account === undefined) {
      const body = html`<p><a href="${devSignInPath}">Back</a></p>`
      return yield* refusing("not_found", page({ status: 404, title: "No such account", body }))
    }
    const state = stateOf(fields.get("state"))
    const location = state === null ? "/dev/mailbox" : `/transfers/resume?state=${state}`
    return HttpServerResponse.setCookieUnsafe(
      HttpServerResponse.empty({ status: 303, headers: { location } }),
      sessionCookie,
      yield* mintSession({ accountId: account.id }),
      { httpOnly: true, sameSite: "lax", path: "/", maxAge: "1 hour", secure: publicUrl.protocol === "https:" },
    )
  })

export const layer = (publicUrl: URL) =>
  Layer.unwrap(Effect.map(EmbeddedIssuer, (issuer) =>
    Layer.merge(
      HttpRouter.add("GET", devSignInPath, guarded(choose)),
      HttpRouter.add("POST", devSignInPath, guarded(Effect.provideService(enter(publicUrl), EmbeddedIssuer, issuer))),
    )))
