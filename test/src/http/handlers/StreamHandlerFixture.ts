/** Fixture: receivers of streams, for tests of stream management. */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { randomUUID } from "node:crypto"
import { lifecycleEventKinds } from "../../../../schemas/identity/LifecycleEventKinds.ts"
import type { Capability } from "../../../../schemas/identity/ServiceGrant.ts"
import { grant, scene } from "../../../services/lifecycle/LifecycleFixture.ts"
import { serviceTokenFor } from "../../../support/TestTokens.ts"
import { type Headers, send } from "../identity/IdentityClient.ts"

export const audience = "service-lifecycle"
export const publicUrl = "http://127.0.0.1:8080"
export const streams = "/v1/lifecycle/streams"
export const status = "/v1/lifecycle/status"
export const verify = "/v1/lifecycle/verify"
export const add = "/v1/lifecycle/subjects:add"
export const remove = "/v1/lifecycle/subjects:remove"
export const push = "urn:ietf:rfc:8935"
export const poll = "urn:ietf:rfc:8936"
export const supported = Object.values(lifecycleEventKinds).map(({ uri }) => uri)
export const sessionRevoked = lifecycleEventKinds["session-revoked"].uri
export const accessRevoked = lifecycleEventKinds["access-revoked"].uri
export const subject = { format: "email", email: "somebody@example.com" }

export const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
export const audienceOf = (project: string) => `urn:bailiwick:project:${project}`

/** A service that may manage streams of its own project, or has the capabilities given. */
export const receiver = Effect.fnUntraced(
  function* (can: ReadonlyArray<Capability> = ["stream.manage", "events.read"]) {
    const made = yield* scene
    const clientId = `receiver-${randomUUID()}`
    const grantId = yield* grant(made, clientId, can)
    const token = yield* serviceTokenFor(clientId, { audience })
    const ask = (method: string, path: string, body?: unknown, headers: Headers = {}) =>
      send(method, path, { ...bearer(token), ...headers }, body)
    return { ...made, grantId, clientId, token, ask }
  },
)

export type Receiver = Effect.Success<ReturnType<typeof receiver>>

export const created = Effect.fnUntraced(function* ({ ask }: Pick<Receiver, "ask">, body: unknown = {}) {
  const answer = yield* ask("POST", streams, body)
  assert.strictEqual(answer.status, 201, answer.text)
  return answer.body
})

/** Every operation on a stream, as a valid request. */
export const operations = (id: string): ReadonlyArray<readonly [method: string, path: string, body?: object]> => [
  ["GET", `${streams}?stream_id=${id}`],
  ["PATCH", streams, { stream_id: id, description: "changed" }],
  ["PUT", streams, { stream_id: id }],
  ["GET", `${status}?stream_id=${id}`],
  ["POST", status, { stream_id: id, status: "paused" }],
  ["POST", verify, { stream_id: id }],
  ["POST", add, { stream_id: id, subject }],
  ["POST", remove, { stream_id: id, subject }],
  ["DELETE", `${streams}?stream_id=${id}`],
]
