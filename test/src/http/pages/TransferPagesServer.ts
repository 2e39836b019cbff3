/** The pages behind mailed links over a real socket, and offers to view on them. */
import { Effect, Layer, Tracer } from "effect"
import { randomUUID } from "node:crypto"
import { type TransferId, WorkspaceId } from "../../../../schemas/BrandedIds.ts"
import { Workspaces } from "../../../../services/accounts/Workspaces.ts"
import { Transfers } from "../../../../services/transfers/Transfers.ts"
import { singleProcess } from "../../../../src/actors/Cluster.ts"
import { domainActor } from "../../../../src/actors/DomainEntity.ts"
import { RejectionAudit } from "../../../../src/http/edge/RejectionAudit.ts"
import { Server } from "../../../../src/http/Server.ts"
import * as TransferPages from "../../../../src/http/pages/TransferPages.ts"
import { day } from "../../../support/Fixtures.ts"
import {
  accept,
  domain,
  feed,
  offer,
  type Person,
  person,
  seat,
  service,
  tokenOf,
} from "../../../services/transfers/TransferFixture.ts"
import { sessions, signedIn } from "../../../support/TestAccounts.ts"

export const publicUrl = new URL("https://mail.example")
export const attack = `<script>alert(1)</script> "&' <img src=x>`

/** Every span with its attributes, which is also all that a log line within it could contain. */
export const spans: Array<Tracer.NativeSpan> = []
const recorder = Layer.succeed(Tracer.Tracer)(Tracer.make({
  span: (options) => {
    const span = new Tracer.NativeSpan(options)
    spans.push(span)
    return span
  },
}))

const pages = TransferPages.layer({
  publicUrl,
  signInUrl: new URL("https://id.example/sign-in?for=mail"),
  safetyWindowMillis: day,
}).pipe(
  Layer.provide(Workspaces.layer),
  Layer.provide(domainActor),
  Layer.provide(singleProcess),
)

export const served = Server.layer(pages, { host: "127.0.0.1", port: 0, publicUrl: publicUrl.href }).pipe(
  Layer.provide(RejectionAudit.layer),
  Layer.provideMerge(service()),
  Layer.provideMerge(sessions),
  Layer.provideMerge(recorder),
)

export type Headers = Record<string, string>

/** The headers of a form that a page without a referrer posts to its own site. */
export const ownForm = {
  origin: "null",
  "sec-fetch-site": "same-origin",
  "content-type": "application/x-www-form-urlencoded",
}

export const call = Effect.fnUntraced(function* (method: string, path: string, headers: Headers = {}, body?: string) {
  const { url } = yield* Server
  return yield* Effect.promise(async () => {
    const response = await fetch(url + path, { method, headers, body: body ?? null, redirect: "manual" })
    return { status: response.status, headers: response.headers, text: await response.text() }
  })
})
export const get = (path: string, headers: Headers = {}) => call("GET", path, headers)
export const press = (path: string, headers: Headers = {}, fields: Record<string, string> = {}) =>
  call("POST", path, { ...ownForm, ...headers }, new URLSearchParams(fields).toString())

export const statusOf = Effect.fnUntraced(function* (id: TransferId) {
  return (yield* (yield* Transfers).find("id", id))!.status
})

/** A pending offer of Alice's to Bob, its link, and Bob's session. */
export const offered = Effect.fnUntraced(function* (
  fields: { readonly alice?: Record<string, unknown>; readonly note?: string } = {},
) {
  const alice = yield* person(fields.alice ?? {})
  const bob = yield* person()
  const domainId = yield* domain(alice)
  const made = yield* offer(alice.id, domainId, bob.email, fields.note ?? null)
  const token = yield* tokenOf("accept", made.id)
  return { alice, bob, made, token, path: `/transfers/accept/${token}`, session: yield* signedIn(bob.id) }
})

export const acceptedOffer = Effect.fnUntraced(function* () {
  const all = yield* offered()
  yield* accept(all.bob.id, all.made.id)
  const stopToken = yield* tokenOf("stop", all.made.id)
  return { ...all, stopToken, stopPath: `/transfers/stop/${stopToken}` }
})

export const another = Effect.fnUntraced(function* (who: Person) {
  const id = WorkspaceId.make(randomUUID())
  yield* feed({ kind: "workspace", id, name: `Second ${attack}`, created_at: "2024-01-01T00:00:00.000Z" })
  yield* seat(id, who.id, "member")
  return id
})
