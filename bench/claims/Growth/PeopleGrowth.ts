/** Ever more people with sessions and receipts, and as many rate limits. */
import { Effect, Layer } from "effect"
import { PersonId } from "../../../schemas/BrandedIds.ts"
import { Sessions } from "../../../services/people/Sessions.ts"
import { SessionActivity } from "../../../services/people/SessionActivity.ts"
import { who } from "../../../services/people/CallerAuthentication.ts"
import { PeopleRetention } from "../../../services/people/PeopleRetention.ts"
import type { AccessToken } from "../../../services/people/AccessTokens.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { Idempotency } from "../../../services/platform/security/Idempotency.ts"
import { Jobs } from "../../../services/platform/messaging/Jobs.ts"
import { RateLimits } from "../../../services/platform/security/RateLimits.ts"
import { type Area, idOf, platform } from "./Area.ts"

const perPerson = 10
const issuer = "https://id.example"

const fill = Effect.fnUntraced(function* (rows: number) {
  const { owner } = yield* Database
  const now = Date.now()
  const people = Math.ceil(rows / perPerson)
  yield* owner`
    insert into people (id, updated_at, issuer, subject, status)
    select 'person-' || n, to_timestamp(0), ${issuer}, 'person-' || n, 'active' from generate_series(0, ${people}::bigint) n`
  yield* owner`
    insert into identities (issuer, subject, person_id, linked_at)
    select ${issuer}, 'person-' || n, 'person-' || n, to_timestamp(0) from generate_series(0, ${people}::bigint) n`
  yield* owner`
    insert into sessions (id, issuer, sid, person_id, client_id, issued_at, authenticated_at, last_seen_at, expires_at, aal,
      amr)
    select ${
    owner.literal(idOf("ms", "n"))
  }, ${issuer}, 'sid-' || n, 'person-' || n / ${perPerson}, 'portal', at, at, at,
      at + interval '1 hour', 'aal1', array['pwd']
    from (
      select n, ms, to_timestamp(ms / 1000.0) as at
      from (select n, ${now}::bigint - n % 8000 * 900000 as ms from generate_series(0, ${rows - 1}::bigint) n) m
    ) x`
  yield* owner`
    insert into idempotency_receipts (principal, method, path, key, fingerprint, kid, status, body, created_at)
    select 'person:person-' || n / ${perPerson}, 'POST',
      case n % 10 when 0 then '/v1/me/link-proofs' else '/v1/people' end, 'key-' || n, '\\x00', 'kid', 201, '{}',
      to_timestamp((${now}::bigint - n % 8000 * 900000) / 1000.0)
    from generate_series(0, ${rows - 1}::bigint) n`
  yield* owner`
    insert into rate_limits (key, hits, expires_at)
    select 'limit-' || n, array[to_timestamp(${now / 1_000}::float8)], to_timestamp(${
    now / 1_000 + 3_600
  }::float8 + n % 60)
    from generate_series(1, ${rows}::bigint) n`
  yield* owner`vacuum analyze people, identities, sessions, idempotency_receipts, rate_limits`
})

const services = Layer.mergeAll(
  Sessions.layer.pipe(Layer.provideMerge(SessionActivity.layer), Layer.provide(Jobs.layer)),
  PeopleRetention.layer(),
  Idempotency.layer,
  RateLimits.layer,
)

const statements: Area["statements"] = (fixture, run, rows) =>
  Effect.gen(function* () {
    const context = yield* Layer.build(Layer.provideMerge(services, platform(fixture, run)))
    return yield* Effect.gen(function* () {
      const { reads } = yield* Database
      const sessions = yield* Sessions
      const sightings = yield* SessionActivity
      const retention = yield* PeopleRetention
      const idempotency = yield* Idempotency
      const limits = yield* RateLimits
      const first = Math.floor(rows / 3 / perPerson)
      const seconds = Math.floor(Date.now() / 1_000)
      const token = (n: number): AccessToken => ({
        via: "person",
        issuer,
        subject: `person-${first + n}`,
        clientId: "portal",
        jti: `jti-${n}`,
        sid: `sid-${(first + n) * perPerson}`,
        authTime: seconds,
        acr: null,
        amr: ["pwd"],
        aal: "aal1",
        issuedAt: seconds,
        expiresAt: seconds + 300,
      })
      const me = (n: number) => ({ issuer, sid: token(n).sid, personId: PersonId.make(`person-${first + n}`) })
      const asked = (n: number, key: string) => ({
        principal: `person:person-${first + n}`,
        method: "POST",
        path: "/v1/people",
        key,
        body: { n },
      })
      const told = { status: 201, encode: () => "{}" }
      return [
        { name: "callers: recognise", run: (n: number) => reads`${who(reads, token(n))}`, descents: 8 },
        { name: "sessions: list", run: (n: number) => sessions.list(me(n)), descents: 16 },
        {
          name: "sessions: seen again, and a new one",
          run: (n: number) =>
            Effect.andThen(
              sightings.add(token(n), me(n).personId, { userAgent: null, address: null }, true),
              Effect.andThen(
                sightings.add(
                  { ...token(n), sid: `new-${n}` },
                  me(n).personId,
                  { userAgent: null, address: null },
                  false,
                ),
                sightings.flush,
              ),
            ),
          descents: 24,
        },
        { name: "sessions and receipts: prune, nothing over", run: () => retention.prune, descents: 4 },
        {
          name: "receipts: a command and its replay",
          run: (n: number) =>
            Effect.andThen(
              idempotency.run(asked(n, `new-${n}`), told, Effect.void),
              idempotency.run(asked(n, `new-${n}`), told, Effect.void),
            ),
          descents: 8,
        },
        {
          name: "rate limits: take",
          run: (n: number) => limits.take({ key: `limit-${first + n}`, limit: 5, windowMillis: 3_600_000 }),
          // Looked up, updated on another page, put into both indexes.
          descents: 6,
        },
        { name: "rate limits: prune, nothing over", run: () => limits.prune, descents: 1 },
      ]
    }).pipe(Effect.provide(context))
  })

export const people: Area = { name: "people", fill, statements }
