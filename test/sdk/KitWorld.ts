/** The transmitter as the program serves it, and a product that follows it, which can be killed at any of its steps. */
import { Effect, Layer } from "effect"
import { DatabaseSync } from "node:sqlite"
import { follow, type FollowOptions, type Notice } from "../../sdk/Follow.ts"
import { type Fact, factsOf } from "../../sdk/EventProjection.ts"
import * as Ledger from "../../sdk/Ledger.ts"
import type { Store } from "../../sdk/Store.ts"
import { sqliteStore } from "../../sdk/stores/Sqlite.ts"
import { CursorApi } from "../../services/lifecycle/CursorApi.ts"
import { SigningKeys } from "../../services/lifecycle/SigningKeys.ts"
import { EmbeddedIssuer } from "../../src/embedded/EmbeddedIssuer.ts"
import { Server } from "../../src/http/Server.ts"
import { decodeJwt } from "jose"
import { management } from "../support/TestManagement.ts"
import { type Scene, scene as sceneOf } from "../services/lifecycle/LifecycleWorld.ts"

/** The app, and beside it what a test looks at it by. */
export const world = CursorApi.layer(new URL("http://127.0.0.1:8080")).pipe(
  Layer.provideMerge(SigningKeys.layer),
  Layer.provideMerge(management({ ROLES: "api,lifecycle", WEBHOOKS_ALLOWED_CIDRS: "127.0.0.0/8" })),
)

const issuer = "http://127.0.0.1:8080/lifecycle"

/** A project whose service may follow it, with the service's own issuer. */
export const scene = Effect.gen(function* () {
  const made = yield* sceneOf
  const { issuer } = yield* EmbeddedIssuer
  return { ...made, asking: { ...made.asking, issuer } }
})

/** The state that the transmitter has now, by its own fold. */
export const stateNow = Effect.fnUntraced(function* ({ asking }: Pick<Scene, "asking">) {
  const token = yield* (yield* CursorApi).snapshot(asking)
  const claims = decodeJwt(token) as { readonly position: number; readonly state: Parameters<typeof factsOf>[0] }
  return { position: claims.position, facts: sorted(factsOf(claims.state)) }
})

const order = ({ group, id }: Fact) => `${group} ${id}`
export const sorted = (facts: ReadonlyArray<Fact>) => [...facts].sort((a, b) => order(a) < order(b) ? -1 : 1)

export interface Run {
  /** Dies at this step of it, counted from 1; never unless told. */
  readonly dieAt?: number
  /** Ends it where it holds, looked at after everything that it does. */
  readonly until?: (notices: ReadonlyArray<Notice>, acknowledged: string) => boolean | Promise<boolean>
  readonly options?: Partial<FollowOptions<DatabaseSync>>
}

/** A product over a database of its own; each run is as a new process of it. */
export const product = Effect.fnUntraced(function* ({ asking }: Scene) {
  const { url } = yield* Server
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

  const run = ({ dieAt = Infinity, options = {}, until = () => false }: Run) =>
    Effect.promise(async () => {
      const stop = new AbortController()
      const notices: Array<Notice> = []
      let steps = 0
      let acknowledged = ""
      // Before and after everything that can be lost: what was sent and written, and the answer to it.
      const step = () => {
        if (++steps < dieAt) return
        stop.abort()
        throw new Error("killed")
      }
      const looks: Array<Promise<void>> = []
      const look = () => {
        const looked = async () => {
          if (!stop.signal.aborted && await until(notices, acknowledged)) stop.abort()
        }
        setTimeout(() => looks.push(looked()), 0)
      }
      const around = async <A>(what: () => Promise<A>): Promise<A> => {
        step()
        const done = await what()
        step()
        return done
      }
      const mortal: Store<DatabaseSync> = {
        ...store,
        transact: (work, alongside) => around(() => store.transact(work, alongside)),
      }
      await follow({
        ...{ baseUrl: url, issuer, projectId, pins, installedVersion: "1", signal: stop.signal, store: mortal },
        token: () => Promise.resolve(token),
        notice: (notice) => {
          notices.push(notice)
          look()
        },
        fetch: async (input, init) => {
          const answer = await around(() => fetch(input, init))
          if (String(input).endsWith("/acknowledgements") && answer.ok) {
            acknowledged = (await answer.clone().json()).acknowledged_cursor
          }
          look()
          return answer
        },
        ...options,
      })
      await Promise.all(looks)
      return { notices, steps, acknowledged, killed: steps >= dieAt }
    })

  const standing = Effect.promise(() => store.read(() => Ledger.standing(projectId)))
  const facts = Effect.map(Effect.promise(() => store.read(() => Ledger.facts(projectId))), sorted)
  return { database, facts, pins, projectId, run, standing, store }
})
