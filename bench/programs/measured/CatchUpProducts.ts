/**
 * Products that catch up with a project's history through the SDK, in a process of their own: into SQLite, into
 * PostgreSQL or, as yardsticks, pages that are only read, or read and verified. An order is a line of JSON.
 */
import pg from "pg"
import process from "node:process"
import { createInterface } from "node:readline"
import { DatabaseSync } from "node:sqlite"
import { genesis } from "../../../sdk/Canonical.ts"
import { follow, type Notice } from "../../../sdk/Follow.ts"
import { keyCache } from "../../../sdk/Keys.ts"
import * as Ledger from "../../../sdk/Ledger.ts"
import type { Store } from "../../../sdk/Store.ts"
import { overPg, postgresStore } from "../../../sdk/stores/Postgres.ts"
import { sqliteStore } from "../../../sdk/stores/Sqlite.ts"
import { transmitter } from "../../../sdk/Transmitter.ts"
import { verifyEvent } from "../../../sdk/Verify.ts"
import { say } from "../ChildProtocol.ts"

export interface Order {
  readonly how: "read" | "verify" | "sqlite" | "postgres" | "snapshot"
  readonly baseUrl: string
  readonly projectId: string
  /** `iss` and `aud` of messages. */
  readonly issuer: string
  readonly audience: string
  readonly pins: ReadonlyArray<string>
  readonly token: string
  readonly installedVersion: string
  /** The cursor before the first event. */
  readonly cursor: string
  /** The position of the last event. */
  readonly head: number
  /** A file for SQLite, an address for PostgreSQL. */
  readonly database: string
}

export interface Caught {
  readonly seconds: number
  readonly events: number
  readonly fault: string | null
}

const optionsOf = ({ baseUrl, projectId, token }: Order, signal: AbortSignal) => ({
  baseUrl,
  projectId,
  signal,
  token: () => Promise.resolve(token),
})

/** Reads every page in turn; `each` gets a page's contents. */
const pages = async (order: Order, each: (sets: ReadonlyArray<string>) => Promise<void>): Promise<number> => {
  const remote = transmitter(optionsOf(order, new AbortController().signal))
  let [events, cursor, more] = [0, order.cursor, true]
  while (more) {
    const page = await remote.events(cursor, 0)
    await each(page.items.map(({ set }) => set))
    events += page.items.length
    cursor = page.cursor
    more = page.more
  }
  return events
}

const verified = (order: Order) => {
  const remote = transmitter(optionsOf(order, new AbortController().signal))
  const { audience, issuer, pins } = order
  const expected = { issuer, audience, keys: keyCache(remote.keys)(pins), now: () => Date.now() / 1_000 }
  return pages(order, async (sets) => {
    for (let at = 0; at < sets.length; at += 8) {
      await Promise.all(sets.slice(at, at + 8).map((set) => verifyEvent(set, expected)))
    }
  })
}

/** Follows until `ended` holds; counts the applied events. */
const followed = async <Tx>(order: Order, store: Store<Tx>, ended: (notice: Notice) => boolean): Promise<number> => {
  const { audience, installedVersion, issuer, pins } = order
  const stop = new AbortController()
  let events = 0
  let fault: unknown = null
  await follow({
    ...optionsOf(order, stop.signal),
    store,
    audience,
    installedVersion,
    issuer,
    pins,
    notice: (notice) => {
      if (notice.kind === "applied") events += notice.events
      if ("error" in notice) {
        fault = notice.error
        stop.abort()
      }
      if (ended(notice)) stop.abort()
    },
  })
  if (fault !== null) throw fault
  const standing = await store.read(() => Ledger.standing(order.projectId))
  if (standing?.position !== order.head) throw new Error(`at ${standing?.position}, not at ${order.head}`)
  return events
}

/** A product at the beginning of a history, without any state. */
const begun = async <Tx>({ cursor, pins, projectId }: Order, store: Store<Tx>) => {
  const nothing = { jti: "begun", issuedAt: 0, epoch: 1, position: 0, cursor, chainHead: genesis, state: {} }
  await store.transact(() => Ledger.swap(projectId, { ...nothing, keySet: pins }))
}

const opened = ({ kind }: Notice) => kind === "opened"

/** Runs `work` over a store that is prepared before time is measured. */
const over = async <A>(order: Order, work: <Tx>(store: Store<Tx>) => Promise<A>): Promise<A> => {
  if (order.how === "postgres") {
    const pool = new pg.Pool({ connectionString: order.database, max: 4 })
    const store = postgresStore(overPg(pool))
    await store.prepare()
    return await work(store).finally(() => pool.end())
  }
  const database = new DatabaseSync(order.database)
  database.exec("pragma journal_mode = wal; pragma synchronous = full")
  const store = sqliteStore(database)
  await store.prepare()
  return await work(store).finally(() => database.close())
}

const timed = async (work: () => Promise<number>): Promise<Caught> => {
  const from = performance.now()
  const events = await work()
  return { seconds: (performance.now() - from) / 1_000, events, fault: null }
}

const run = (order: Order): Promise<Caught> => {
  switch (order.how) {
    case "read":
      return timed(() => pages(order, () => Promise.resolve()))
    case "verify":
      return timed(() => verified(order))
    case "snapshot":
      return over(order, (store) => timed(() => followed(order, store, opened)))
    default:
      return over(order, async (store) => {
        await begun(order, store)
        return timed(() => followed(order, store, opened))
      })
  }
}

createInterface({ input: process.stdin }).on("line", (line) => {
  run(JSON.parse(line)).catch((error): Caught => ({ seconds: NaN, events: 0, fault: String(error) }))
    .then((caught) => say("caught", { ...caught }))
}).on("close", () => process.exit(0))
say("ready", {})
