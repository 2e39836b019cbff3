/** The kit receives by streams of the real program, pushed and polled, until both are equal. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { DatabaseSync } from "node:sqlite"
import { SigningKeys } from "../../services/lifecycle/SigningKeys.ts"
import { EmbeddedIssuer } from "../../src/embedded/EmbeddedIssuer.ts"
import { Server } from "../../src/http/Server.ts"
import * as Ledger from "../../sdk/Ledger.ts"
import { type Notice, receiver } from "../../sdk/Receive.ts"
import { sqliteStore } from "../../sdk/stores/Sqlite.ts"
import { until } from "../e2e/support/Until.ts"
import { serve } from "../services/platform/Outbound/LoopbackServers.ts"
import type { Scene } from "../services/lifecycle/LifecycleFixture.ts"
import { happen } from "./Lives.ts"
import { pushTo, secret, streamOf } from "./KitStreams.ts"
import { fixture, scene, sorted, stateNow } from "./KitFixture.ts"

/** A product with its own database that receives by a stream until the scope closes. */
const receiving = Effect.fnUntraced(function* ({ asking }: Scene, streamId: string, how: "run" | "poll") {
  const { url: baseUrl } = yield* Server
  const keys = yield* SigningKeys
  yield* keys.ensure
  const pins = (yield* keys.jwks).keys.map(({ kid }) => String(kid))
  const { mintAccessToken } = yield* EmbeddedIssuer
  const { clientId, projectId } = asking
  const token = yield* mintAccessToken({ subject: clientId, clientId, audience: "service-lifecycle" })
  const database = yield* Effect.acquireRelease(
    Effect.sync(() => new DatabaseSync(":memory:")),
    (database) => Effect.sync(() => database.close()),
  )
  const store = sqliteStore(database)
  yield* Effect.promise(() => store.prepare())
  const notices: Array<Notice> = []
  const stop = new AbortController()
  const one = receiver({
    baseUrl,
    projectId,
    pins,
    store,
    streamId,
    authorization: secret,
    signal: stop.signal,
    installedVersion: "1",
    issuer: "http://127.0.0.1:8080/lifecycle",
    token: () => Promise.resolve(token),
    notice: (notice) => void notices.push(notice),
    answerWithinMillis: 60_000,
  })
  const going = one[how]()
  yield* Effect.addFinalizer(() => {
    stop.abort()
    return Effect.promise(() => going)
  })
  const standing = Effect.promise(() => store.read(() => Ledger.standing(projectId)))
  const noticed = (kind: Notice["kind"], times = 1) =>
    until(kind, Effect.sync(() => notices.filter((notice) => notice.kind === kind).length), (n) => n >= times)
  const equal = Effect.gen(function* () {
    const { facts, position } = yield* stateNow({ asking })
    yield* until(`position ${position}`, standing, (place) => place?.position === position && place.open)
    assert.deepStrictEqual(sorted(yield* Effect.promise(() => store.read(() => Ledger.facts(projectId)))), facts)
  })
  return { ...one, equal, notices, noticed }
})

layer(fixture, { excludeTestServices: true })("a product by a stream of the program", (it) => {
  it.effect("polled: events are applied, a verification arrives, and events of a pause are applied after it", () =>
    Effect.gen(function* () {
      const made = yield* scene
      const { status, streamId } = yield* streamOf(made)
      const { equal, notices, noticed, verify } = yield* receiving(made, streamId, "poll")
      yield* noticed("opened")
      yield* happen(made)
      yield* equal
      yield* Effect.promise(() => verify())
      yield* noticed("verified")
      assert.deepInclude(notices.find(({ kind }) => kind === "verified"), { solicited: true })
      yield* status("paused")
      yield* happen(made)
      yield* status("enabled")
      yield* happen(made)
      yield* equal
      assert.isFalse(notices.some(({ kind }) => kind === "refused" || kind === "closed"), JSON.stringify(notices))
    }))

  it.effect("pushed: events are applied, every push is answered 202, and a verification arrives", () =>
    Effect.gen(function* () {
      const made = yield* scene
      const there = Promise.withResolvers<ReturnType<typeof receiver>["receive"]>()
      const answered: Array<number> = []
      const { port } = yield* serve((request, response) => {
        let token = ""
        request.on("data", (chunk) => token += chunk).on("end", () => {
          there.promise.then((receive) => receive(token, request.headers.authorization)).then(({ body, status }) => {
            answered.push(status)
            response.writeHead(status, { "content-type": "application/json" })
              .end(body === null ? "" : JSON.stringify(body))
          })
        })
      })
      const { streamId } = yield* streamOf(made, pushTo(`http://127.0.0.1:${port}/events`))
      const product = yield* receiving(made, streamId, "run")
      there.resolve(product.receive)
      yield* product.noticed("opened")
      yield* happen(made)
      yield* product.equal
      // Each event was pushed, also if the cursor brought it first.
      yield* until("pushes", Effect.sync(() => answered.length), (n) => n >= 6)
      yield* Effect.promise(() => product.verify())
      yield* product.noticed("verified")
      assert.deepStrictEqual([...new Set(answered)], [202])
      assert.isFalse(product.notices.some(({ kind }) => kind === "refused" || kind === "closed"))
    }))
})
