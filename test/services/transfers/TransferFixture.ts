/** The fixture for tests of transfers: the real service over the test file's database, with a test clock. */
import { assert } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { randomUUID } from "node:crypto"
import { AccountId, CommandId, DomainId, type TransferId, WorkspaceId } from "../../../schemas/BrandedIds.ts"
import type { Plan, WorkspaceRole } from "../../../schemas/mail/MailAccount.ts"
import { Cookies } from "../../../services/authentication/Cookies.ts"
import { KeyUses } from "../../../services/authentication/KeyUses.ts"
import { mailKinds } from "../../../services/accounts/MailKinds.ts"
import { Principals } from "../../../services/authentication/Principals.ts"
import { Directory } from "../../../services/directory/Directory.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { OneTimeTokens } from "../../../services/platform/security/OneTimeTokens.ts"
import { RateLimits } from "../../../services/platform/security/RateLimits.ts"
import { Timers } from "../../../services/platform/database/Timers.ts"
import { Vault } from "../../../services/platform/security/Vault.ts"
import { watchingTransfers } from "../../../services/transfers/DirectoryListener.ts"
import { Transfers, type TransfersConfig } from "../../../services/transfers/Transfers.ts"
import { day, noon } from "../../support/Fixtures.ts"
import { ground } from "../../support/TestAccounts.ts"

const ring = JSON.stringify({ active: "k1", keys: { k1: Buffer.alloc(32, 7).toString("base64") } })

export const config: TransfersConfig = {
  enabled: true,
  requestWindowMillis: 7 * day,
  safetyWindowMillis: day,
  // Never reached (InitiateLimit.test.ts sets its own).
  initiateLimit: 1_000,
  // Faster to generate than RSA, otherwise the same.
  dkim: "ed25519",
}

/** All dependencies of the service but `Cookies`. */
export const footing = Layer.mergeAll(
  Principals.layer,
  Directory.layer(watchingTransfers(mailKinds)),
  OneTimeTokens.layer,
).pipe(
  Layer.provideMerge(Layer.mergeAll(Timers.layer, RateLimits.layer, KeyUses.layer)),
  Layer.provideMerge(Vault.layer({ keys: Redacted.make(ring), file: "/nowhere" })),
  Layer.provideMerge(ground),
)

/** The service with all its dependencies but `Cookies`: the test decides which sessions are known. */
export const service = (over: Partial<TransfersConfig> = {}) =>
  Transfers.layer({ ...config, ...over }).pipe(Layer.provideMerge(footing))

/** The same without known sessions. Its loops run by the real clock, so they do not follow the test clock. */
export const fixture = (over: Partial<TransfersConfig> = {}) => Layer.provide(service(over), Cookies.layer([]))

/** Runs an effect under its own test clock, which begins at noon. */
export const timed = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.andThen(TestClock.setTime(noon), effect).pipe(Effect.provide(TestClock.layer()))

export const now = Effect.clockWith((clock) => clock.currentTimeMillis)

const versions = new Map<string, number>()

/** Applies lines of the directory, each with a new version for its id; dies if one is rejected. */
export const feed = Effect.fnUntraced(function* (...lines: ReadonlyArray<Record<string, unknown>>) {
  const texts = lines.map((line) => {
    const version = (versions.get(String(line["id"])) ?? 0) + 1
    versions.set(String(line["id"]), version)
    return JSON.stringify({ ...line, version })
  })
  const results = yield* (yield* Directory).apply(texts)
  const refused = results.filter(({ _tag }) => _tag !== "applied")
  if (refused.length > 0) return yield* Effect.die(new Error(JSON.stringify(refused)))
})

export interface Person {
  readonly id: AccountId
  readonly email: string
  /** The account's own workspace, its oldest. */
  readonly workspaceId: WorkspaceId
}

export const accountLine = (id: string, fields: { readonly plan?: Plan; readonly [field: string]: unknown } = {}) => ({
  kind: "account",
  id,
  email: `${id}@example.com`,
  name: `Name of ${id.slice(0, 4)}`,
  plan: "free",
  platform_admin: false,
  status: "active",
  ...fields,
})

export const seatLine = (id: string, workspaceId: WorkspaceId, accountId: AccountId, role: WorkspaceRole) => ({
  kind: "workspace_membership",
  id,
  workspace_id: workspaceId,
  account_id: accountId,
  role,
})

/** Creates an active account with its own workspace. */
export const person = Effect.fnUntraced(
  function* (fields: { readonly plan?: Plan; readonly [field: string]: unknown } = {}) {
    const id = AccountId.make(randomUUID())
    const workspaceId = WorkspaceId.make(randomUUID())
    yield* feed(
      accountLine(id, fields),
      { kind: "workspace", id: workspaceId, name: "W", created_at: "2020-01-01T00:00:00.000Z" },
      seatLine(randomUUID(), workspaceId, id, "owner"),
    )
    return { id, email: typeof fields["email"] === "string" ? fields["email"] : `${id}@example.com`, workspaceId }
  },
)

export const domainLine = (id: string, owner: Person, fields: Record<string, unknown> = {}) => ({
  kind: "domain",
  id,
  name: `d-${id.slice(0, 8)}.example`,
  account_id: owner.id,
  workspace_id: owner.workspaceId,
  verified_at: "2025-01-01T00:00:00.000Z",
  dkim_selector: "old",
  ...fields,
})

/** Creates a verified domain of an account, in its own workspace. */
export const domain = Effect.fnUntraced(function* (owner: Person, fields: Record<string, unknown> = {}) {
  const id = DomainId.make(randomUUID())
  yield* feed(domainLine(id, owner, fields))
  return id
})

export const seat = Effect.fnUntraced(function* (workspaceId: WorkspaceId, accountId: AccountId, role: WorkspaceRole) {
  const id = randomUUID()
  yield* feed(seatLine(id, workspaceId, accountId, role))
  return id
})

export const command = () => ({ commandId: CommandId.make(randomUUID()) })

/** Offers a domain. */
export const offer = Effect.fnUntraced(
  function* (from: AccountId, domainId: DomainId, to: string, note: string | null = null) {
    const transfers = yield* Transfers
    return yield* transfers.initiate({ ...command(), accountId: from, domainId, targetEmail: to, note })
  },
)

export const accept = Effect.fnUntraced(function* (
  accountId: AccountId,
  transferId: TransferId,
  how: { readonly byToken?: boolean; readonly orgId?: WorkspaceId | null; readonly rotateDkim?: boolean } = {},
) {
  const { byToken = false, orgId = null, rotateDkim = false } = how
  return yield* (yield* Transfers).accept({ ...command(), accountId, transferId, byToken, orgId, rotateDkim })
})

export const stop = Effect.fnUntraced(function* (transferId: TransferId) {
  return yield* (yield* Transfers).stop({ ...command(), transferId })
})

export const force = Effect.fnUntraced(function* (admin: AccountId, domainId: DomainId, to: string, rotateDkim = true) {
  return yield* (yield* Transfers).force({ ...command(), accountId: admin, domainId, targetEmail: to, rotateDkim })
})

/** The token in a transfer's mail. */
export const tokenOf = Effect.fnUntraced(function* (does: "accept" | "stop", id: string) {
  const { sql } = yield* Database
  const [row] = yield* sql<{ kid: string; nonce: Uint8Array }>`
    select ${sql(`${does}_kid`)} as kid, ${sql(`${does}_nonce`)} as nonce from transfers where id = ${id}::uuid`
  return Redacted.value((yield* OneTimeTokens).derive({ kind: `transfer-${does}`, id, ...row! }))
})

/** Problems without a detail, on purpose or because other members describe them. */
const withoutDetail = new Set<unknown>([
  ...["not_found", "forbidden", "invalid_credentials", "rate_limited", "broadcasts_in_flight", "scheduled_emails"],
  ...["dependency_unavailable", "held"],
])

/** The code of the problem that an effect fails with, or `done`; asserts that the problem has a detail. */
export const codeOf = <A, E extends object, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.match(effect, {
    onFailure: (error) => {
      if ("code" in error && !withoutDetail.has(error.code)) {
        assert.match("detail" in error ? String(error.detail) : "", /^[A-Z].*\.$/, String(error.code))
      }
      return String("code" in error ? error.code : "_tag" in error ? error._tag : error)
    },
    onSuccess: () => "done",
  })

export const domainRow = Effect.fnUntraced(function* (id: string) {
  const { sql } = yield* Database
  const [row] = yield* sql<{
    account_id: string
    workspace_id: string
    dkim_selector: string
    owner_held: boolean
    revision: bigint
  }>`select account_id::text as account_id, workspace_id::text as workspace_id, dkim_selector, owner_held, revision
    from domains where id = ${id}::uuid`
  return row!
})

/** The messages about a domain on the stream TRANSFERS, in their order. */
export const published = Effect.fnUntraced(function* (domainId: string) {
  const { sql } = yield* Database
  const rows = yield* sql<{ subject: string; seq: bigint; payload: string }>`
    select subject, seq, payload from outbox where stream = 'TRANSFERS' and aggregate_id = ${domainId} order by seq`
  return rows.map(({ payload, seq, subject }) => ({ status: subject.split(".").at(-1)!, seq, payload }))
})

export const session = (accountId: AccountId) => ({ via: "cookie", accountId, authTime: null }) as const
