/**
 * The course of a product along its project's history, whatever tells it of the next event: a snapshot first, then events
 * as they are signed, each page in one transaction of the product's, acknowledged after its commit (once a second while more
 * pages follow). Access is opened last, when everything up to the head is applied.
 *
 * It closes access, and says so, where a message cannot be believed, where the history has a gap or is another one, where
 * the transmitter refuses the service, where the product's own database was put back to an earlier place (the transmitter
 * remembers a later acknowledgement), and, if asked for, where nothing was heard for too long. What can only be waited out
 * is tried again, ever more slowly.
 */
import { stage, unstage } from "./FactTable.ts"
import * as Ledger from "./Ledger.ts"
import { compromisedBy, type Fact } from "./EventProjection.ts"
import { keyRing } from "./Keys.ts"
import { believed } from "./Page.ts"
import { partsReader } from "./ManifestParts.ts"
import { Gap, Refusal } from "./Refusal.ts"
import type { Store, Work } from "./Store.ts"
import { Answered, type Page, transmitter, type TransmitterOptions } from "./Transmitter.ts"
import { type Pins, type VerifiedEvent, type VerifiedManifest, verifyCheckpoint } from "./Verify.ts"

/** What was just written, in the transaction that is about to commit. */
export type Applied =
  | { readonly kind: "events"; readonly events: ReadonlyArray<VerifiedEvent> }
  | { readonly kind: "snapshot"; readonly facts: ReadonlyArray<Fact> }

/** What an operator wants to see. `closed` by a Refusal is an alarm: see `error`. */
export type Notice =
  | { readonly kind: "snapshot"; readonly epoch: number; readonly position: number }
  | { readonly kind: "applied"; readonly events: number; readonly position: number }
  | { readonly kind: "opened" }
  | { readonly kind: "closed"; readonly because: string; readonly error: unknown }
  | { readonly kind: "unacknowledged"; readonly error: unknown }
  | { readonly kind: "retrying"; readonly afterMillis: number; readonly error: unknown }

export interface CourseOptions<Tx> extends TransmitterOptions {
  readonly store: Store<Tx>
  /** The exact version of the connector that runs here. */
  readonly installedVersion: string
  /** The thumbprints (RFC 7638) to believe before there is any snapshot. Got from the operator, not from the wire. */
  readonly pins: ReadonlyArray<string>
  /** `iss` of messages; `/lifecycle` under the base URL unless told. */
  readonly issuer?: string
  /** `aud` of messages; the project's own unless told. */
  readonly audience?: string
  /** The product's own changes, in the same transaction. */
  readonly alongside?: (applied: Applied, tx: Tx) => void | Promise<void>
  readonly notice?: (notice: Notice) => void
  /** Closes access where nothing was heard for so long; never unless told. */
  readonly closeAfterMillis?: number
  /** Milliseconds since the epoch. */
  readonly now?: () => number
}

/** A page that was asked for before it is its turn. */
interface Ahead {
  readonly after: string
  readonly page: Promise<Page>
}

/** A commit's price is that of a page. One that turns out to be too long is asked for anew, as a page of the usual size. */
const pageAhead = 1_000
/** Between acknowledgements while more pages follow. */
const sayEveryMillis = 1_000
const firstRetryMillis = 500
const lastRetryMillis = 30_000
/** Whatever is asked for: what was revoked is not heard of meanwhile. */
const longestRetryMillis = 600_000

/** Places that the transmitter does not go on from. */
const misplaced = new Set([
  "cursor_epoch_changed",
  "cursor_expired",
  "cursor_ahead",
  "chain_mismatch",
])
const refusals = new Set([401, 403, 404])
/** What is kept of the cursor is none: nothing else of what is asked could be wrong. */
const damaged = 422

/** Waits; no longer than until the signal is aborted. */
export const pause = (millis: number, signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    const done = () => {
      clearTimeout(timer)
      signal.removeEventListener("abort", done)
      resolve()
    }
    const timer = setTimeout(done, millis)
    signal.addEventListener("abort", done)
    if (signal.aborted) done()
  })

export const course = <Tx>(options: CourseOptions<Tx>) => {
  const { alongside, baseUrl, installedVersion, projectId, signal, store } = options
  const now = options.now ?? Date.now
  const notice = options.notice ?? (() => {})
  const remote = transmitter(options)
  const ring = keyRing(remote.keys, now)
  const expected = (kids: ReadonlyArray<string>): Pins => ({
    issuer: options.issuer ?? new URL("/lifecycle", baseUrl).href,
    audience: options.audience ?? `urn:bailiwick:project:${projectId}`,
    keys: ring(kids),
    now: () => now() / 1_000,
  })

  let behind = false
  let ahead: Ahead | null = null
  let acknowledged: string | null = null
  let saidAt = -Infinity
  let unheard: string | null = null
  let heardAt = now()
  let failures = 0
  /** Why access was closed here, so that it is said once. */
  let closed: string | null = null

  const standing = () => store.read(() => Ledger.standing(projectId))

  const close = async (because: string, error: unknown) => {
    await store.transact(() => Ledger.close(projectId, because))
    if (closed !== because) notice({ kind: "closed", because, error })
    closed = because
  }

  /** Lays a large state by, part by part; gives the work that puts it in place. */
  const staged = async (manifest: VerifiedManifest): Promise<() => Work<ReadonlyArray<Fact>>> => {
    await store.transact(() => unstage(projectId))
    const reader = partsReader(manifest.parts, manifest.stateDigest)
    let count = 0
    for (const { digest } of manifest.parts) {
      const facts = reader.next(await remote.part(digest))
      count += await store.transact(() => stage(projectId, manifest, facts))
    }
    reader.end()
    return function* () {
      yield* Ledger.swapStaged(projectId, manifest, count)
      // Whoever does something beside it is told of all facts at once.
      return alongside === undefined ? [] : yield* Ledger.facts(projectId)
    }
  }

  const catchUp = async (pins: ReadonlyArray<string>) => {
    const snapshot = await verifyCheckpoint(await remote.snapshot(), projectId, expected(pins))
    await store.transact(
      "state" in snapshot ? () => Ledger.swap(projectId, snapshot) : await staged(snapshot),
      alongside && ((facts, tx) => alongside({ kind: "snapshot", facts }, tx)),
    )
    behind = false
    ahead = null
    notice({ kind: "snapshot", epoch: snapshot.epoch, position: snapshot.position })
  }

  /** Applies what follows and commits; gives how many were new. Throws Gap where one does not follow. */
  const apply = async (good: ReadonlyArray<VerifiedEvent>): Promise<number> => {
    const events = await store.transact(
      () => Ledger.apply(projectId, good),
      alongside && ((events, tx) => alongside({ kind: "events", events }, tx)),
    )
    const last = events.at(-1)
    if (last !== undefined) notice({ kind: "applied", events: events.length, position: last.position })
    // Access is closed with it: only a snapshot goes on from here, whoever takes it.
    if (events.some((event) => compromisedBy(event) !== null)) {
      behind = true
      throw new Gap("a key was stolen")
    }
    return events.length
  }

  /** After the commit only. That it is not heard stops nothing, unless what was committed is another history. */
  const acknowledge = async (): Promise<void> => {
    const place = await standing()
    if (place === null || place.cursor === acknowledged) return
    const first = acknowledged === null
    let heard: string
    try {
      heard = await remote.acknowledge(place.cursor, place.chainHead, installedVersion)
    } catch (error) {
      if (
        signal.aborted ||
        error instanceof Answered && misplaced.has(error.code ?? "")
      ) throw error
      if (unheard !== String(error)) notice({ kind: "unacknowledged", error })
      unheard = String(error)
      return
    }
    unheard = null
    saidAt = now()
    if (first && heard !== place.cursor) {
      const since = await standing()
      if (since?.cursor === place.cursor) {
        throw new Gap("restored: the transmitter has heard of a later place")
      }
    }
    acknowledged = place.cursor
  }

  const asked = async (after: string, waitSeconds: number, limit?: number): Promise<Page> => {
    const page = await remote.events(after, waitSeconds, limit)
    heardAt = now()
    return page
  }

  /**
   * The page after a place. Where more follows, that is asked for at once, so that the transmitter reads it while this one
   * is applied: it counts only if that is where the product stands then, by its own account.
   */
  const pageAfter = async ({ cursor }: Ledger.Standing, waitSeconds: number): Promise<Page> => {
    const before = ahead
    ahead = null
    const page = await (before?.after === cursor ? before.page : asked(cursor, waitSeconds))
    ahead = page.more ? { after: page.cursor, page: asked(page.cursor, 0, pageAhead) } : null
    // The caller that takes the page gets its failure.
    ahead?.page.catch(() => {})
    return page
  }

  /**
   * One page of events after where the product stands, or the snapshot that it needs first; waits for an event so long
   * where access is open. Gives whether the head was reached.
   */
  const turn = async (waitSeconds: number): Promise<boolean> => {
    const place = await standing()
    if (place === null || behind || place.closedBecause === Ledger.keyStolen) {
      await catchUp(place?.pins ?? options.pins)
      acknowledged = null
      return false
    }
    if (acknowledged === null) await acknowledge()
    const page = await pageAfter(place, place.open ? waitSeconds : 0)
    const { good, refused } = await believed(page.items.map(({ set }) => set), expected(place.pins))
    const came = good.length > 0 ? await apply(good) : 0
    // A key may have been announced by what was applied just now: it is asked for again before it is refused.
    if (refused !== null && came === 0) throw refused
    if (refused !== null) return false
    if (good.length > 0 && !(page.more && now() - saidAt < sayEveryMillis)) await acknowledge()
    if (page.more || place.open) return !page.more
    const head = await standing()
    if (head !== null && await store.transact(() => Ledger.open(projectId, head))) {
      closed = null
      notice({ kind: "opened" })
    }
    return true
  }

  const recover = async (error: unknown) => {
    const lost = error instanceof Answered && (misplaced.has(error.code ?? "") || error.status === damaged)
    if (error instanceof Refusal) {
      behind = true
      await close(error.code, error)
    } else if (error instanceof Gap || lost) {
      behind = true
      await close(error instanceof Answered ? error.code ?? "no_cursor" : "gap", error)
    } else if (error instanceof Answered && refusals.has(error.status)) {
      await close("refused", error)
    } else if (options.closeAfterMillis !== undefined && now() - heardAt > options.closeAfterMillis) {
      await close("silence", error)
    }
  }

  /** Does what such a failure asks for, and gives how many milliseconds to wait before the next attempt. */
  const failed = async (error: unknown): Promise<number> => {
    ahead = null
    const before = behind
    // The store itself may be what failed: then nobody gets an answer from it either.
    await recover(error).catch(() => {})
    // What is said of the place is an answer: whatever was waited out before it delays no snapshot.
    if (behind && !before) failures = 0
    const slower = Math.min(lastRetryMillis, firstRetryMillis * 2 ** failures++)
    const asked = error instanceof Answered ? Math.min(longestRetryMillis, (error.retryAfterSeconds ?? 0) * 1_000) : 0
    const afterMillis = failures === 1 && behind ? 0 : Math.max(asked, slower * (0.5 + Math.random() / 2))
    notice({ kind: "retrying", afterMillis, error })
    return afterMillis
  }

  return {
    ...{ acknowledge, apply, expected, failed, recover, remote, standing, turn },
    /** What was attempted came through: the next failure is a first one again. */
    succeeded: () => {
      failures = 0
    },
  }
}
