/**
 * The sync loop: keeps a product's local state up with its project's history. First a snapshot, then pages of events,
 * each page in one transaction of the product, acknowledged after its commit (once a second while more pages follow).
 * Access is opened last, when everything up to the head is applied.
 *
 * Access is closed, with a notice, when a message fails verification, when the history has a gap or is another one,
 * when the transmitter refuses the service (401, 403, 404), when the product's database was restored to an earlier
 * position (the transmitter knows a later acknowledgement), and, if configured, after a silence. Other failures are
 * retried with growing delays.
 */
import { stage, unstage } from "./EntryTable.ts"
import * as Ledger from "./Ledger.ts"
import { compromisedBy, type StateEntry } from "./EventProjection.ts"
import { keyCache } from "./Keys.ts"
import { verifyPage } from "./Page.ts"
import { partsReader } from "./ManifestParts.ts"
import { Gap, Refusal } from "./Refusal.ts"
import type { Store, Work } from "./Store.ts"
import { Answered, type Page, transmitter, type TransmitterOptions } from "./Transmitter.ts"
import { type Pins, type VerifiedEvent, type VerifiedManifest, verifyCheckpoint } from "./Verify.ts"

/** The changes of the transaction that is about to commit. */
export type Applied =
  | { readonly kind: "events"; readonly events: ReadonlyArray<VerifiedEvent> }
  | { readonly kind: "snapshot"; readonly facts: ReadonlyArray<StateEntry> }

/** An event of the loop, for logs. `closed` with a Refusal as `error` means a forged or damaged message. */
export type Notice =
  | { readonly kind: "snapshot"; readonly epoch: number; readonly position: number }
  | { readonly kind: "applied"; readonly events: number; readonly position: number }
  | { readonly kind: "opened" }
  | { readonly kind: "closed"; readonly because: string; readonly error: unknown }
  | { readonly kind: "unacknowledged"; readonly error: unknown }
  | { readonly kind: "retrying"; readonly afterMillis: number; readonly error: unknown }

export interface SyncOptions<Tx> extends TransmitterOptions {
  readonly store: Store<Tx>
  /** The exact version of the connector that runs in the product. */
  readonly installedVersion: string
  /** The thumbprints (RFC 7638) to trust before the first snapshot, as the operator gave them. */
  readonly pins: ReadonlyArray<string>
  /** `iss` of messages; default: `/lifecycle` under the base URL. */
  readonly issuer?: string
  /** `aud` of messages; default: the project's own. */
  readonly audience?: string
  /** The product's own changes, in the same transaction. */
  readonly alongside?: (applied: Applied, tx: Tx) => void | Promise<void>
  readonly notice?: (notice: Notice) => void
  /** Closes access after this time without a page from the transmitter; default: never. */
  readonly closeAfterMillis?: number
  /** Milliseconds since the epoch. */
  readonly now?: () => number
}

/** A page that was requested in advance. */
interface Prefetched {
  readonly after: string
  readonly page: Promise<Page>
}

/** Size of a prefetched page: a larger page saves commits. If its response is too long, the usual size is requested. */
const prefetchSize = 1_000
/** Time between acknowledgements while more pages follow. */
const acknowledgeEveryMillis = 1_000
const firstRetryMillis = 500
const lastRetryMillis = 30_000
/** Limit on the transmitter's Retry-After: revocations do not arrive while the product waits. */
const maxRetryAfterMillis = 600_000

/** Problem codes for a cursor from which the transmitter cannot continue. */
const cursorCodes = new Set([
  "cursor_epoch_changed",
  "cursor_expired",
  "cursor_ahead",
  "chain_mismatch",
])
const refusals = new Set([401, 403, 404])
/** The stored cursor is malformed: nothing else in these requests can be. */
const malformedCursor = 422

/** Waits for a time, or until the signal is aborted. */
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

/** The sync loop of one product: `turn` does one step; `failed` handles its error and says how long to wait. */
export const syncLoop = <Tx>(options: SyncOptions<Tx>) => {
  const { alongside, baseUrl, installedVersion, projectId, signal, store } = options
  const now = options.now ?? Date.now
  const notice = options.notice ?? (() => {})
  const remote = transmitter(options)
  const pinnedKeys = keyCache(remote.keys, now)
  const expected = (kids: ReadonlyArray<string>): Pins => ({
    issuer: options.issuer ?? new URL("/lifecycle", baseUrl).href,
    audience: options.audience ?? `urn:bailiwick:project:${projectId}`,
    keys: pinnedKeys(kids),
    now: () => now() / 1_000,
  })

  let snapshotNeeded = false
  let prefetched: Prefetched | null = null
  let acknowledged: string | null = null
  let acknowledgedAt = -Infinity
  /** The last failure to acknowledge, so that each is noticed once. */
  let acknowledgeError: string | null = null
  let lastPageAt = now()
  let failures = 0
  /** Why this process closed access, so that it is noticed once. */
  let closed: string | null = null

  const standing = () => store.read(() => Ledger.standing(projectId))

  const close = async (because: string, error: unknown) => {
    await store.transact(() => Ledger.close(projectId, because))
    if (closed !== because) notice({ kind: "closed", because, error })
    closed = because
  }

  /** Stages a large state, part by part; returns the work that replaces the local state by it. */
  const staged = async (manifest: VerifiedManifest): Promise<() => Work<ReadonlyArray<StateEntry>>> => {
    await store.transact(() => unstage(projectId))
    const reader = partsReader(manifest.parts, manifest.stateDigest)
    let count = 0
    for (const { digest } of manifest.parts) {
      const entries = reader.next(await remote.part(digest))
      count += await store.transact(() => stage(projectId, manifest, entries))
    }
    reader.end()
    return function* () {
      yield* Ledger.swapStaged(projectId, manifest, count)
      // Only `alongside` needs all entries in memory at once.
      return alongside === undefined ? [] : yield* Ledger.facts(projectId)
    }
  }

  const catchUp = async (pins: ReadonlyArray<string>) => {
    const snapshot = await verifyCheckpoint(await remote.snapshot(), projectId, expected(pins))
    await store.transact(
      "state" in snapshot ? () => Ledger.swap(projectId, snapshot) : await staged(snapshot),
      alongside && ((facts, tx) => alongside({ kind: "snapshot", facts }, tx)),
    )
    snapshotNeeded = false
    prefetched = null
    notice({ kind: "snapshot", epoch: snapshot.epoch, position: snapshot.position })
  }

  /** Applies events and commits; returns how many were new. Throws Gap if one does not follow. */
  const apply = async (good: ReadonlyArray<VerifiedEvent>): Promise<number> => {
    const events = await store.transact(
      () => Ledger.apply(projectId, good),
      alongside && ((events, tx) => alongside({ kind: "events", events }, tx)),
    )
    const last = events.at(-1)
    if (last !== undefined) notice({ kind: "applied", events: events.length, position: last.position })
    // The same transaction closed access: only a snapshot can continue.
    if (events.some((event) => compromisedBy(event) !== null)) {
      snapshotNeeded = true
      throw new Gap("a key was stolen")
    }
    return events.length
  }

  /**
   * Acknowledges the committed position. A failure gives a notice and stops nothing, unless the transmitter refuses the
   * cursor. Throws Gap if the transmitter knows a later acknowledgement than this database.
   */
  const acknowledge = async (): Promise<void> => {
    const current = await standing()
    if (current === null || current.cursor === acknowledged) return
    const first = acknowledged === null
    let confirmed: string
    try {
      confirmed = await remote.acknowledge(current.cursor, current.chainHead, installedVersion)
    } catch (error) {
      if (
        signal.aborted ||
        error instanceof Answered && cursorCodes.has(error.code ?? "")
      ) throw error
      if (acknowledgeError !== String(error)) notice({ kind: "unacknowledged", error })
      acknowledgeError = String(error)
      return
    }
    acknowledgeError = null
    acknowledgedAt = now()
    if (first && confirmed !== current.cursor) {
      const since = await standing()
      if (since?.cursor === current.cursor) {
        throw new Gap("restored: the transmitter knows a later acknowledgement")
      }
    }
    acknowledged = current.cursor
  }

  const fetchPage = async (after: string, waitSeconds: number, limit?: number): Promise<Page> => {
    const page = await remote.events(after, waitSeconds, limit)
    lastPageAt = now()
    return page
  }

  /**
   * The page after a standing. If more pages follow, the next one is requested at once, so that the transmitter reads
   * it while this one is applied. It is used only if its cursor is then the local one.
   */
  const pageAfter = async ({ cursor }: Ledger.Standing, waitSeconds: number): Promise<Page> => {
    const before = prefetched
    prefetched = null
    const page = await (before?.after === cursor ? before.page : fetchPage(cursor, waitSeconds))
    prefetched = page.more ? { after: page.cursor, page: fetchPage(page.cursor, 0, prefetchSize) } : null
    // The turn that uses the page gets its failure; without this handler it would be an unhandled rejection.
    prefetched?.page.catch(() => {})
    return page
  }

  /**
   * One step: the next page of events, or first the snapshot that is needed. While access is open, waits up to
   * `waitSeconds` for an event. Returns whether the head was reached.
   */
  const turn = async (waitSeconds: number): Promise<boolean> => {
    const current = await standing()
    if (current === null || snapshotNeeded || current.closedBecause === Ledger.keyStolen) {
      await catchUp(current?.pins ?? options.pins)
      acknowledged = null
      return false
    }
    if (acknowledged === null) await acknowledge()
    const page = await pageAfter(current, current.open ? waitSeconds : 0)
    const { good, refused } = await verifyPage(page.items.map(({ set }) => set), expected(current.pins))
    const applied = good.length > 0 ? await apply(good) : 0
    // The events just applied may have announced the key: the next turn verifies the message again.
    if (refused !== null && applied === 0) throw refused
    if (refused !== null) return false
    if (good.length > 0 && !(page.more && now() - acknowledgedAt < acknowledgeEveryMillis)) await acknowledge()
    if (page.more || current.open) return !page.more
    const head = await standing()
    if (head !== null && await store.transact(() => Ledger.open(projectId, head))) {
      closed = null
      notice({ kind: "opened" })
    }
    return true
  }

  /** Closes access if the failure asks for it, and notes whether a snapshot is needed. */
  const recover = async (error: unknown) => {
    const cursorRefused = error instanceof Answered &&
      (cursorCodes.has(error.code ?? "") || error.status === malformedCursor)
    if (error instanceof Refusal) {
      snapshotNeeded = true
      await close(error.code, error)
    } else if (error instanceof Gap || cursorRefused) {
      snapshotNeeded = true
      await close(error instanceof Answered ? error.code ?? "no_cursor" : "gap", error)
    } else if (error instanceof Answered && refusals.has(error.status)) {
      await close("refused", error)
    } else if (options.closeAfterMillis !== undefined && now() - lastPageAt > options.closeAfterMillis) {
      await close("silence", error)
    }
  }

  /** Handles a failed turn; returns how many milliseconds to wait before the next attempt. */
  const failed = async (error: unknown): Promise<number> => {
    prefetched = null
    const before = snapshotNeeded
    // If the store itself failed, closing fails as well; the gate cannot read from it either, and so admits no person.
    await recover(error).catch(() => {})
    // The transmitter answered that a snapshot is needed: earlier failures must not delay the snapshot.
    if (snapshotNeeded && !before) failures = 0
    const backoff = Math.min(lastRetryMillis, firstRetryMillis * 2 ** failures++)
    const retryAfter = error instanceof Answered
      ? Math.min(maxRetryAfterMillis, (error.retryAfterSeconds ?? 0) * 1_000)
      : 0
    const afterMillis = failures === 1 && snapshotNeeded ? 0 : Math.max(retryAfter, backoff * (0.5 + Math.random() / 2))
    notice({ kind: "retrying", afterMillis, error })
    return afterMillis
  }

  return {
    acknowledge,
    apply,
    expected,
    failed,
    recover,
    remote,
    standing,
    turn,
    /** A turn succeeded: the next failure counts as the first one again. */
    succeeded: () => {
      failures = 0
    },
  }
}
