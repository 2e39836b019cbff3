/**
 * The first of several faults in a request is answered, in the order of docs/api/mail.md: every two faults together, on
 * the operation that can have them all.
 */
import { assert, layer } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { randomUUID } from "node:crypto"
import { InstitutionId } from "../../../../schemas/BrandedIds.ts"
import { Database } from "../../../../services/platform/database/Database.ts"
import { codeOf, reason } from "../../../support/Fixtures.ts"
import { member, person } from "../../../support/TestIdentity.ts"
import { management } from "../../../support/TestManagement.ts"
import { as, ask, done, send } from "./IdentityClient.ts"
import { proposed } from "./Catalogue/InstitutionsCases.ts"
import { operations } from "./Catalogue.ts"
import { held } from "./ConformsToSpec.ts"
import { stage } from "./IdentityStage.ts"

/** In order: the first one of a request's faults is answered. */
const faults = [
  "host",
  "method",
  "size",
  "headers",
  "type",
  "token",
  "rate",
  "form",
  "key",
  "place",
  "role",
  "sign-in",
  "match",
  "state",
] as const
type Name = (typeof faults)[number]

const answers: Readonly<Record<Name, readonly [number, string | null]>> = {
  "host": [421, "misdirected_request"],
  "method": [405, "method_not_allowed"],
  "size": [413, "body_too_large"],
  "headers": [431, "headers_too_large"],
  "type": [415, "unsupported_media_type"],
  "token": [401, "invalid_token"],
  "rate": [429, "rate_limited"],
  "form": [422, null],
  "key": [409, "idempotency_key_reused"],
  "place": [404, "not_found"],
  "role": [403, "role_required"],
  "sign-in": [401, "insufficient_user_authentication"],
  "match": [412, "precondition_failed"],
  "state": [409, "invalid_state"],
}

/** A receipt of one path and one person, who had the role at that time. */
const impossible = new Set(["key place", "key role"])

const operation = operations.find(({ operationId }) => operationId.endsWith(".approveAccessGrantReview"))!

const fixture = Effect.gen(function* () {
  const { institution, people, ...rest } = yield* stage
  const fern = { institution, people, ...rest }
  const [busy, busyMember] = [yield* person(), yield* person()]
  yield* member(institution, busy, "administrator")
  yield* member(institution, busyMember, "member")
  const { sql } = yield* Database
  const later = new Date((yield* Clock.currentTimeMillis) + 3_600_000)
  for (const id of [busy, busyMember]) {
    yield* sql`insert into rate_buckets (key, level, drawn, at, full_at)
      values (${`management.writes:person:${id}`}, 0, 0, ${later}, ${later})`
  }
  const path = (id: string, action: string, at = institution) =>
    `/v1/institutions/${at}/access-grant-reviews/${id}/${action}`
  const review = Effect.map(proposed(fern), ({ params }) => params.review_id)
  const [open, revoked, approved] = [yield* review, yield* review, yield* review]
  done(yield* ask(people.administrator, "POST", path(revoked, "revoke"), { reason }))
  const used = { "idempotency-key": randomUUID() }
  done(yield* ask(people.administrator, "POST", path(approved, "approve"), { reason }, used))
  return { approved, busy, busyMember, open, path, people, revoked, used }
})

layer(management({ MANAGEMENT_APPROVAL_MAX_AGE: "15 minutes", MANAGEMENT_WRITE_RATE: "100000" }), {
  excludeTestServices: true,
  timeout: "2 minutes",
})("of two faults", (it) => {
  it.effect("the first fault in the order of checks is answered", () =>
    Effect.gen(function* () {
      const { approved, busy, busyMember, open, path, people, revoked, used } = yield* fixture
      const stale = Math.floor((yield* Clock.currentTimeMillis) / 1_000) - 3_600

      const asked = Effect.fnUntraced(function* (has: (name: Name) => boolean) {
        const who = has("role") ? (has("rate") ? busyMember : people.member) : has("rate") ? busy : people.administrator
        const auth = yield* (has("sign-in") ? as(who, { authTime: stale }) : as(who))
        const id = has("key") ? approved : has("state") ? revoked : open
        const body = {
          reason: has("form") ? "short" : has("key") ? `${reason}, and Tuesday` : reason,
          ...(has("size") ? { padding: "x".repeat(256 * 1024) } : {}),
        }
        const headers = {
          ...(has("token") ? {} : auth),
          ...(has("key") ? used : { "idempotency-key": randomUUID() }),
          ...(has("host") ? { host: "elsewhere.example" } : {}),
          ...(has("headers") ? { "x-padding": "x".repeat(8_192) } : {}),
          ...(has("match") ? { "if-match": `"sha256:${"0".repeat(64)}"` } : {}),
          "content-type": has("type") ? "text/plain" : "application/json",
        }
        const place = path(id, "approve", has("place") ? InstitutionId.make(randomUUID()) : undefined)
        const answer = yield* send(has("method") ? "PUT" : "POST", place, headers, body)
        // The document has the operation's answers, not those of a method that does not exist.
        return answer.status === 405 ? answer : held(operation, answer)
      })

      let pairs = 0
      for (const [index, first] of faults.entries()) {
        for (const second of faults.slice(index)) {
          if (impossible.has(`${first} ${second}`)) continue
          const answer = yield* asked((name) => name === first || name === second)
          assert.deepStrictEqual(codeOf(answer), answers[first], `${first} and ${second}: ${answer.text.slice(0, 400)}`)
          pairs++
        }
      }
      assert.strictEqual(pairs, 14 * 15 / 2 - 2)
      // None of these requests has done anything.
      assert.strictEqual((yield* asked(() => false)).status, 200)
    }), 300_000)
})
