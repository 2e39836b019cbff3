/** Fixture of key rotation tests: the transmitter with its keys, and consumers that pin keys as products do. */
import { Clock, Effect, Layer } from "effect"
import { decodeProtectedHeader } from "jose"
import { randomUUID } from "node:crypto"
import { CursorApi } from "../../../../services/lifecycle/CursorApi.ts"
import { KeyRotation } from "../../../../services/lifecycle/KeyRotation.ts"
import { lifecycleIssuer } from "../../../../services/lifecycle/EventSigner.ts"
import { SigningKeys } from "../../../../services/lifecycle/SigningKeys.ts"
import { Database } from "../../../../services/platform/database/Database.ts"
import { announcedBy, compromisedBy } from "../../../../sdk/EventProjection.ts"
import { keyCache } from "../../../../sdk/Keys.ts"
import { type Pins, type VerifiedEvent, verifyEvent, verifySnapshot } from "../../../../sdk/Verify.ts"
import { now } from "../../transfers/TransferFixture.ts"
import { publicUrl, type Scene, signAll, transmitter } from "../LifecycleFixture.ts"
import { day } from "../../../support/Fixtures.ts"

/** Options of a file's layers; the timeout allows for making RSA keys. */
export const slow = { excludeTestServices: true, timeout: "2 minutes" } as const

export const rotating = (deadlineMillis = 14 * day) =>
  KeyRotation.layer({ deadlineMillis }).pipe(Layer.provideMerge(transmitter))

/** Does and signs everything that is due now. */
export const work = Effect.gen(function* () {
  const { advance } = yield* KeyRotation
  yield* signAll
  while (yield* advance) yield* signAll
  yield* signAll
  while (yield* advance);
})

export const kidOf = (token: string): string => String(decodeProtectedHeader(token).kid)

/** Verification options with these keys pinned, over the keys that are served now. */
export const holding = Effect.fnUntraced(function* (projectId: string, kids: Iterable<string>) {
  const served = yield* (yield* SigningKeys).jwks
  const now = yield* Clock.currentTimeMillis
  return {
    issuer: lifecycleIssuer(publicUrl),
    audience: `urn:bailiwick:project:${projectId}`,
    keys: keyCache(() => Promise.resolve(served))([...kids]),
    now: () => now / 1_000,
  } satisfies Pins
})

/**
 * A product that follows a project by cursor. It starts from a snapshot, with the pins that an operator gave
 * it, or with every key there is.
 */
export const consumer = Effect.fnUntraced(function* (
  { asking }: Pick<Scene, "asking">,
  told?: ReadonlyArray<string>,
) {
  const consumption = yield* CursorApi
  const keys = yield* SigningKeys
  yield* keys.ensure
  const pins = new Set<string>(told ?? (yield* keys.keySet))
  let place = { cursor: "", chainHead: "" }
  let snapshots = 0

  const catchUp = Effect.gen(function* () {
    const token = yield* consumption.snapshot(asking)
    const held = yield* holding(asking.projectId, pins)
    const { chainHead, cursor, keySet } = yield* Effect.tryPromise({
      try: () => verifySnapshot(token, asking.projectId, held),
      catch: (error) => error,
    })
    pins.clear()
    for (const kid of keySet) pins.add(kid)
    place = { cursor, chainHead }
    snapshots++
    return kidOf(token)
  })

  /** Reads one page; verifies each event by the keys pinned before it. Fails as either side does. */
  const page = Effect.gen(function* () {
    const { cursor, items, more } = yield* consumption.events({
      ...asking,
      after: place.cursor,
      limit: 50,
      waitMillis: 0,
    })
    const read: Array<VerifiedEvent> = []
    for (const { set } of items) {
      const held = yield* holding(asking.projectId, pins)
      const event = yield* Effect.tryPromise({ try: () => verifyEvent(set, held), catch: (error) => error })
      if (compromisedBy(event) !== null) pins.clear()
      for (const kid of [event.kid, ...announcedBy(event)]) pins.add(kid)
      place = { cursor, chainHead: event.digest }
      read.push(event)
    }
    return { more, read }
  })

  /** Reads all pages, in order. */
  const read = Effect.gen(function* () {
    const all: Array<VerifiedEvent> = []
    for (;;) {
      const one = yield* page
      all.push(...one.read)
      if (!one.more) return all
    }
  })

  const acknowledge = Effect.suspend(() =>
    consumption.acknowledge({
      ...asking,
      cursor: place.cursor,
      chain_head: place.chainHead,
      installed_version: "1",
    })
  )

  yield* catchUp
  return { acknowledge, asking, catchUp, pins, read, snapshots: () => snapshots }
})

export type KeyConsumer = Effect.Success<ReturnType<typeof consumer>>

/** Whether the consumer's cursor is refused as expired; any other failure is passed on. */
export const expired = (own: KeyConsumer) =>
  own.read.pipe(
    Effect.as(false),
    Effect.catchIf(
      (error) => error instanceof Error && error.name === "CursorExpired",
      () => Effect.succeed(true),
    ),
  )

/** Key ids by state, in the order of succession. */
export const states = Effect.gen(function* () {
  const { keys } = yield* (yield* KeyRotation).list
  const of = (wanted: string): ReadonlyArray<string> =>
    keys.filter(({ state }) => state === wanted).map(({ kid }) => kid)
  return {
    announced: of("announced"),
    published: of("published"),
    active: of("active"),
    retiring: of("retiring"),
    retired: of("retired"),
    compromised: of("compromised"),
  }
})

export const served = Effect.map(
  Effect.flatMap(SigningKeys, ({ jwks }) => jwks),
  ({ keys }) => keys.map(({ kid }) => String(kid)),
)

/** Inserts a paused stream of the project, delivered up to a position; returns its id. */
export const stream = Effect.fnUntraced(function* ({ asking, project }: Scene, position: number) {
  const { sql } = yield* Database
  const [at, id] = [new Date(yield* now), randomUUID()]
  yield* sql`insert into lifecycle_streams ${
    sql.insert({
      id,
      project_id: project,
      service_issuer: asking.issuer,
      service_id: asking.clientId,
      status: "paused",
      status_by: "receiver",
      delivery: "poll",
      created_at: at,
      updated_at: at,
      epoch: 1,
      position,
    })
  }`
  return id
})

/** Key ids of the stream's own undelivered messages. */
export const ownKids = Effect.fnUntraced(function* (streamId: string) {
  const { sql } = yield* Database
  const rows = yield* sql<{ message: string }>`
    select message from lifecycle_stream_messages where stream_id = ${streamId}::uuid and delivered_at is null`
  return rows.map(({ message }) => kidOf(message))
})

export const signedBy = Effect.fnUntraced(function* (project: string) {
  const { sql } = yield* Database
  const rows = yield* sql<{ kid: string }>`
    select kid from lifecycle_messages where project_id = ${project} order by epoch, position`
  return rows.map(({ kid }) => kid)
})
