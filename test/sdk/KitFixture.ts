/** The program as transmitter, and a product that follows it and can be killed at any step. */
import { Effect, Layer } from "effect"
import { DatabaseSync } from "node:sqlite"
import { follow, type FollowOptions, type Notice } from "../../sdk/Follow.ts"
import { entriesOf, type StateEntry } from "../../sdk/EventProjection.ts"
import * as Ledger from "../../sdk/Ledger.ts"
import type { Store } from "../../sdk/Store.ts"
import { sqliteStore } from "../../sdk/stores/Sqlite.ts"
import { CursorApi } from "../../services/lifecycle/CursorApi.ts"
import { SigningKeys } from "../../services/lifecycle/SigningKeys.ts"
import { EmbeddedIssuer } from "../../src/embedded/EmbeddedIssuer.ts"
import { Server } from "../../src/http/Server.ts"
import { decodeJwt } from "jose"
import { management } from "../support/TestManagement.ts"
import { type Scene, scene as sceneOf } from "../services/lifecycle/LifecycleFixture.ts"

/** The app, with the services that tests read from. */
export const fixture = CursorApi.layer(new URL("http://127.0.0.1:8080")).pipe(
  Layer.provideMerge(SigningKeys.layer),
  Layer.provideMerge(management({ ROLES: "api,lifecycle", WEBHOOKS_ALLOWED_CIDRS: "127.0.0.0/8" })),
)

/** The issuer of lifecycle messages. */
export const issuer = "http://127.0.0.1:8080/lifecycle"

/** A project whose service may follow it, with the service's own issuer. */
export const scene = Effect.gen(function* () {
  const made = yield* sceneOf
  const { issuer } = yield* EmbeddedIssuer
  return { ...made, asking: { ...made.asking, issuer } }
})

/** The transmitter's current state, by its own projection. */
export const stateNow = Effect.fnUntraced(function* ({ asking }: Pick<Scene, "asking">) {
  const token = yield* (yield* CursorApi).snapshot(asking)
  const claims = decodeJwt(token) as { readonly position: number; readonly state: Parameters<typeof entriesOf>[0] }
  return { position: claims.position, facts: sorted(entriesOf(claims.state)) }
})

const order = ({ group, id }: StateEntry) => `${group} ${id}`
export const sorted = (facts: ReadonlyArray<StateEntry>) => [...facts].sort((a, b) => order(a) < order(b) ? -1 : 1)

export interface Run {
  /** The step at which it is killed, counted from 1; default: never. */
  readonly dieAt?: number
  /** The condition that ends the run, evaluated after each notice and response. */
  readonly until?: (notices: ReadonlyArray<Notice>, acknowledged: string) => boolean | Promise<boolean>
  readonly options?: Partial<FollowOptions<DatabaseSync>>
}

/** A product with its own database; each run stands for a new process. */
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
      // Counts a step before and after each request and each transaction.
      const step = () => {
        if (++steps < dieAt) return
        stop.abort()
        throw new Error("killed")
      }
      const checks: Array<Promise<void>> = []
      const check = () => {
        const checked = async () => {
          if (!stop.signal.aborted && await until(notices, acknowledged)) stop.abort()
        }
        setTimeout(() => checks.push(checked()), 0)
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
        baseUrl: url,
        issuer,
        projectId,
        pins,
        installedVersion: "1",
        signal: stop.signal,
        store: mortal,
        token: () => Promise.resolve(token),
        notice: (notice) => {
          notices.push(notice)
          check()
        },
        fetch: async (input, init) => {
          const answer = await around(() => fetch(input, init))
          if (String(input).endsWith("/acknowledgements") && answer.ok) {
            acknowledged = (await answer.clone().json()).acknowledged_cursor
          }
          check()
          return answer
        },
        ...options,
      })
      await Promise.all(checks)
      return { notices, steps, acknowledged, killed: steps >= dieAt }
    })

  const standing = Effect.promise(() => store.read(() => Ledger.standing(projectId)))
  const facts = Effect.map(Effect.promise(() => store.read(() => Ledger.facts(projectId))), sorted)
  return { database, facts, pins, projectId, run, standing, store }
})
