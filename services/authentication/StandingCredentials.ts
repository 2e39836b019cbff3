/** Whether the credentials of answers that last for hours still are those of active accounts. */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import { Buffer } from "node:buffer"
import type { AccountId } from "../../schemas/BrandedIds.ts"
import type { Credential } from "../../schemas/api/CredentialsApi.ts"
import type { DependencyUnavailable, InvalidCredentials } from "../../schemas/problems/HttpProblems.ts"

/** The credential of a request that is still answered. */
export type PresentedAgain = Effect.Effect<Credential["Service"], InvalidCredentials | DependencyUnavailable>

/** A stream of an account, and the credential that its client sent. */
export interface Admitted {
  readonly accountId: AccountId
  readonly credential: PresentedAgain
}

/**
 * Presents the credentials of these streams again: `refused` are those whose session, key or account has ended. A stream
 * is in neither list where the issuer's keys cannot be fetched now, so its check is to be repeated.
 */
export const standingOf = Effect.fnUntraced(function* <A extends Admitted>(
  reads: PgClient.PgClient,
  streams: ReadonlyArray<A>,
): Effect.fn.Return<{ readonly valid: ReadonlyArray<A>; readonly refused: ReadonlyArray<A> }, SqlError.SqlError> {
  const refused: Array<A> = []
  const asked: Array<readonly [A, Credential["Service"]]> = []
  for (const stream of streams) {
    yield* stream.credential.pipe(
      Effect.map((credential) => void asked.push([stream, credential])),
      Effect.catchTag("InvalidCredentials", () => Effect.sync(() => void refused.push(stream))),
      Effect.catchTag("DependencyUnavailable", () => Effect.void),
    )
  }
  if (asked.length === 0) return { valid: [], refused }
  const hashes = asked.map(([, one]) => one.via === "key" ? Buffer.from(one.hash).toString("hex") : "")
  const good = yield* reads<{ n: number }>`
    select s.n::int from unnest(${asked.map(([{ accountId }]) => accountId)}::uuid[], ${hashes}::text[])
      with ordinality s(account_id, hash, n)
    join accounts a on a.id = s.account_id and a.status = 'active' and not a.removed
    where s.hash = '' or exists (
      select from api_keys k where k.hash = decode(s.hash, 'hex') and k.is_active and k.account_id = a.id)`
  const standing = new Set(good.map(({ n }) => n - 1))
  const valid: Array<A> = []
  for (const [i, [stream]] of asked.entries()) (standing.has(i) ? valid : refused).push(stream)
  return { valid, refused }
})
