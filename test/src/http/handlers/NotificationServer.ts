/** `/v1/notifications` over a real socket, and a reader of its live stream. */
import { Effect, Layer, Queue } from "effect"
import { HttpApi, HttpApiBuilder } from "effect/http-api"
import { request } from "node:http"
import type { NotificationId } from "../../../../schemas/BrandedIds.ts"
import { NotificationsApi } from "../../../../schemas/api/NotificationsApi.ts"
import { KeyUses } from "../../../../services/authentication/KeyUses.ts"
import { Principals } from "../../../../services/authentication/Principals.ts"
import { Inbox } from "../../../../services/notifications/Inbox.ts"
import { Live } from "../../../../services/notifications/Live.ts"
import { Idempotency } from "../../../../services/platform/security/Idempotency.ts"
import { Preferences } from "../../../../services/notifications/Preferences.ts"
import { authenticated, presented } from "../../../../src/http/auth/AccountAuth.ts"
import { RejectionAudit } from "../../../../src/http/edge/RejectionAudit.ts"
import { notifications } from "../../../../src/http/handlers/NotificationsHandlers.ts"
import { Server } from "../../../../src/http/Server.ts"
import { ground, sessions } from "../../../support/TestAccounts.ts"
import { vault } from "../../../support/TestVault.ts"

const publicUrl = new URL("https://mail.example")

const app = HttpApiBuilder.layer(HttpApi.make("bailiwick").add(NotificationsApi)).pipe(
  Layer.provide(notifications),
  Layer.provide([authenticated(publicUrl), presented(publicUrl)]),
)

/** On the runtime's own server, or on node:http. */
export const servedBy = (nodeHttp: boolean) =>
  Server.layer(app, { host: "127.0.0.1", port: 0, publicUrl: publicUrl.href, nodeHttp }).pipe(
    Layer.provide(RejectionAudit.layer),
    Layer.provideMerge(Layer.mergeAll(Inbox.layer, Live.layer, Preferences.layer)),
    Layer.provide(Layer.provide(Idempotency.layer, vault)),
    Layer.provideMerge(Principals.layer),
    Layer.provide(KeyUses.layer),
    Layer.provideMerge(sessions),
    Layer.provideMerge(ground),
  )

export const served = servedBy(false)

export type Headers = Record<string, string>

export interface Answer {
  readonly status: number
  readonly headers: globalThis.Headers
  // deno-lint-ignore no-explicit-any
  readonly body: any
}

export const call = Effect.fnUntraced(function* (method: string, path: string, headers: Headers = {}, body?: string) {
  const { url } = yield* Server
  return yield* Effect.promise(async (): Promise<Answer> => {
    const response = await fetch(url + path, {
      method,
      headers: { ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
      ...(body === undefined ? {} : { body }),
    })
    const text = await response.text()
    return { status: response.status, headers: response.headers, body: text === "" ? null : JSON.parse(text) }
  })
})

export interface LiveEvent {
  readonly id: string
  readonly event: string
  readonly data: {
    readonly total: number
    readonly unread: number
    readonly read_at?: string
    readonly notification?: { readonly id: NotificationId; readonly title: string; readonly read_at: string | null }
  }
}

export interface Reader {
  readonly status: number
  readonly headers: Readonly<Record<string, unknown>>
  /** The next event; null when the stream has ended. */
  readonly next: Effect.Effect<LiveEvent | null>
  /** Closes the socket, as a client that leaves. */
  readonly cut: Effect.Effect<void>
}

const eventOf = (block: string): LiveEvent | null => {
  const fields = Object.fromEntries(block.split("\n").map((line) => line.split(/: (.*)/s, 2)))
  return fields["data"] === undefined ? null : { ...fields, data: JSON.parse(fields["data"]) } as LiveEvent
}

/** Opens a stream, as EventSource does with its last id. */
export const follow = Effect.fnUntraced(function* (
  headers: Headers,
  lastEventId?: string,
  path = "/v1/notifications/stream",
) {
  const { port } = yield* Server
  const events = yield* Queue.unbounded<LiveEvent | null>()
  return yield* Effect.callback<Reader>((resume) => {
    const asking = request({
      port,
      path,
      headers: {
        accept: "text/event-stream",
        ...headers,
        ...(lastEventId === undefined ? {} : { "last-event-id": lastEventId }),
      },
      agent: false,
    }, (response) => {
      let text = ""
      response.setEncoding("utf8")
      response.on("data", (chunk: string) => {
        text += chunk
        const blocks = text.split("\n\n")
        text = blocks.pop()!
        for (const event of blocks.map(eventOf)) if (event !== null) Queue.offerUnsafe(events, event)
      })
      response.once("close", () => Queue.offerUnsafe(events, null))
      response.once("error", () => {})
      resume(Effect.succeed({
        status: response.statusCode ?? 0,
        headers: response.headers,
        next: Queue.take(events),
        cut: Effect.sync(() => void asking.destroy()),
      }))
    })
    asking.once("error", () => {})
    asking.end()
  })
})
