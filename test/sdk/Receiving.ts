/**
 * A product with its own database that receives by a stream of the test transmitter (KitOrigin.ts).
 */
import { DatabaseSync } from "node:sqlite"
import { assert, onTestFinished } from "vitest"
import * as Ledger from "../../sdk/Ledger.ts"
import { type Notice, type ReceiveOptions, receiver } from "../../sdk/Receive.ts"
import type { Store } from "../../sdk/Store.ts"
import { sqliteStore } from "../../sdk/stores/Sqlite.ts"
import { origin, streamId, watched } from "./KitOrigin.ts"
import { issuer, now, projectId } from "./Tokens.ts"

/** A product with its own database; each `start` stands for a new process. */
export const product = async (at: Awaited<ReturnType<typeof origin>>) => {
  const database = new DatabaseSync(":memory:")
  const store = sqliteStore(database)
  await store.prepare()
  const pins = [at.key().kid]
  const clock = { ahead: 0 }
  const standing = () => store.read(() => Ledger.standing(projectId))
  const facts = () => store.read(() => Ledger.facts(projectId))

  const start = (more: Partial<ReceiveOptions<DatabaseSync>> = {}, around: Store<DatabaseSync> = store) => {
    const stop = new AbortController()
    const notices: Array<Notice> = []
    const watch = watched()
    const one = receiver<DatabaseSync>({
      baseUrl: at.url,
      issuer,
      projectId,
      streamId,
      pins,
      installedVersion: "1",
      signal: stop.signal,
      store: around,
      token: () => Promise.resolve("token"),
      // Long enough for a busy machine.
      answerWithinMillis: 60_000,
      now: () => now * 1_000 + clock.ahead,
      notice: (notice) => {
        notices.push(notice)
        watch.changed()
      },
      ...more,
    })
    let going: Promise<void> | undefined
    const end = async () => {
      stop.abort()
      watch.changed()
      await going
    }
    onTestFinished(end)
    return {
      ...one,
      end,
      notices,
      noticed: (kind: Notice["kind"], times = 1) =>
        watch.until(() => notices.filter((notice) => notice.kind === kind).length >= times),
      begin: (how: "run" | "poll" = "run") => {
        going = one[how]()
      },
    }
  }
  return { clock, facts, standing, start, store }
}

export const scene = async () => {
  const at = await origin()
  onTestFinished(() => at.end())
  return { at, own: await product(at) }
}

export type Scene = Awaited<ReturnType<typeof scene>>

/** A running product that has reached the head and is open. */
export const opened = async ({ own }: Scene, more: Partial<ReceiveOptions<DatabaseSync>> = {}) => {
  const one = own.start(more)
  one.begin()
  await one.noticed("opened")
  return one
}

export const equal = async ({ at, own }: Scene) => {
  assert.deepStrictEqual(await own.facts(), at.facts())
  assert.deepInclude(await own.standing(), { open: true, position: at.head(), cursor: `c${at.head()}` })
}
