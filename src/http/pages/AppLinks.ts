/**
 * `/`, and the paths that notices link to: they lead into the console, whose shell asks for a sign-in and returns to
 * the screen. Without a console (`CONSOLE=off`) they say where the same can be asked.
 */
import { Effect, Layer } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { type AppPathName, appPaths, filledPath } from "../../../services/platform/AppPaths.ts"
import { html } from "../../../services/platform/mail/Html.ts"
import { ownPage, ownSheet, ownStylePath } from "./OwnPage.ts"

export interface AppLinksOptions {
  /** Whether this installation has the console. */
  readonly console: boolean
  readonly transfers: boolean
  /** The name of this installation. */
  readonly name: string
}

/** The screens, by the paths that lead to them, and what the API answers about the same. */
const screens = {
  webhook: ["/console/webhooks/:webhook_id", "/v1/webhooks/:webhook_id"],
  delivery: ["/console/deliveries/:delivery_id", "/v1/webhook-deliveries/:delivery_id"],
  apiKeys: ["/console/api-keys", "/v1/api-keys/"],
  domainTransfer: ["/console/transfers/:transfer_id", "/v1/domain-transfers/:transfer_id"],
  requests: ["/console/requests", "/v1/me/requests"],
  decide: ["/console/decide", "/v1/policies/reviews"],
  review: ["/console/decide/:review_id", "/v1/policies/reviews/:review_id"],
  project: ["/console/projects/:project_id", "/v1/projects/:project_id"],
} as const satisfies Partial<Record<AppPathName, readonly [screen: string, api: string]>>

const landing = ({ console, name }: AppLinksOptions) =>
  ownPage({
    title: name,
    body:
      html`<p>${name} keeps two things straight for an organisation: who may act, and who owns what on its mail platform.</p>
<p>It reviews access and tells connected products of it, delivers email events to webhooks, and moves domains between
accounts.</p>
${
        console
          ? html`<p><a class="button" href="/console/">Open the console</a></p>`
          : html`<p>This installation has no web console.</p>`
      }
<p>Developers find every endpoint in the <a href="/v1/docs">API reference</a>, which is also an
<a href="/v1/openapi.json">OpenAPI document</a>.</p>`,
  })

const withoutConsole = (api: string) =>
  ownPage({
    title: "This installation has no web console",
    body: html`<p>What this link is about can be read by the API, with your key: <code>GET ${api}</code></p>
<p><a href="/v1/docs">API reference</a></p>`,
  })

const leading = (name: keyof typeof screens, { console }: AppLinksOptions) =>
  Effect.map(HttpRouter.params, (params) => {
    const [screen, api] = screens[name]
    if (!console) return withoutConsole(filledPath(api, params))
    const location = filledPath(screen, params)
    return HttpServerResponse.empty({ status: 303, headers: { location, "cache-control": "no-store" } })
  })

/** The routes of the landing page and of the links. */
export const layer = (options: AppLinksOptions) => {
  const link = (name: keyof typeof screens) => HttpRouter.add("GET", appPaths[name], leading(name, options))
  return Layer.mergeAll(
    HttpRouter.add("GET", "/", Effect.sync(() => landing(options))),
    HttpRouter.add("GET", ownStylePath, Effect.succeed(ownSheet)),
    link("webhook"),
    link("delivery"),
    link("apiKeys"),
    link("requests"),
    link("decide"),
    link("review"),
    link("project"),
    options.transfers ? link("domainTransfer") : Layer.empty,
  )
}
