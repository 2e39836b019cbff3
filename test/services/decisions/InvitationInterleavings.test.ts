/**
 * Two concurrent commands on one invitation, or on the first two of an institution: in any order of their round trips
 * the outcome is that of one after the other.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, type Layer } from "effect"
import { type InstitutionId, type PersonId, PolicyReviewId } from "../../../schemas/BrandedIds.ts"
import { Enrollments } from "../../../services/decisions/Enrollments.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { BeforeWrite } from "../../../services/platform/database/FencedWrite.ts"
import { reason } from "../../support/Fixtures.ts"
import { interleaved } from "../../support/Interleaved.ts"
import { counting } from "../../support/Statements.ts"
import { institution, member, person } from "../../support/TestIdentity.ts"
import {
  acceptInvitation,
  codeOf,
  decided,
  decline,
  enroll,
  fixture,
  services,
  sign,
  tokenOf,
} from "./RequestFixture.ts"

type Services = Layer.Success<typeof services>

const invitation = Effect.fnUntraced(function* (fern: InstitutionId, sam: PersonId, signer: PersonId, email: string) {
  const { enrollment_id, policy_review } = yield* enroll(fern, sam, email)
  yield* sign(policy_review!.review_id, "administrator", signer)
  return { id: enrollment_id, token: yield* tokenOf(enrollment_id) }
})

/** A sent invitation of ned's, an unreviewed one, and two of an institution without administrators. */
const scenario = Effect.gen(function* () {
  const w = yield* fixture
  const [ned, mia, moss, sol] = yield* Effect.all([person(), person(), institution(), person()])
  const [finder, thief] = yield* Effect.all([person(), person()])
  yield* member(moss, sol, "sponsor")
  const at = { ...w, ned, mia, moss, sol, finder, thief }
  const sent = yield* invitation(w.fern, w.sam, w.ada, `${ned}@example.com`)
  const waiting = yield* enroll(w.fern, w.sam, `${ned}@example.com`)
  const [first, second] = [
    yield* invitation(moss, sol, w.oz, `${ned}@example.com`),
    yield* invitation(moss, sol, w.ola, `${mia}@example.com`),
  ]
  return { ...at, sent, first, second, waiting: waiting.enrollment_id, review: waiting.policy_review!.review_id }
})
type Scenario = Effect.Success<typeof scenario>

/** The rows of the invitations and memberships, with names in place of ids. */
const stateOf = (at: Scenario) =>
  Effect.gen(function* () {
    const { sql } = yield* Database
    const names = new Map<unknown, string>(Object.entries(at).map(([name, id]) => [id, name]))
    const named = (id: string | null) => id === null ? null : names.get(id)
    const these = [at.sent.id, at.waiting, at.first.id, at.second.id]
    const requests = yield* sql<{ person_id: PersonId | null }>`
      select r.state, r.revision, r.person_id, r.result_id is not null as result, r.mail_id is not null as mailed,
        exists (select from timers t where t.aggregate_id = r.id::text) as timed,
        (select json_agg(json_build_array(v.kind, v.state) order by v.id) from policy_reviews v
          where v.request_id = r.id) as reviews,
        (select json_agg(a.action order by a.action) from audit_records a
          where a.subject = 'request:' || r.id) as audited
      from requests r join unnest(${these}::uuid[]) with ordinality o(id, nth) on o.id = r.id order by o.nth`
    const seats = yield* sql<{ institution_id: InstitutionId; person_id: PersonId; id: string }>`
      select m.institution_id, m.person_id, m.role, m.state, m.revision, cardinality(m.approved_by) as signers,
        (select count(*)::int from outbox b where b.payload like '%"' || m.id || '"%') as told
      from institution_memberships m where m.institution_id in (${at.fern}, ${at.moss}) and not m.removed
      order by m.institution_id = ${at.fern}, m.role, m.person_id = ${at.ned}, m.person_id = ${at.mia}`
    return {
      requests: requests.map((row) => ({ ...row, person_id: named(row.person_id) })),
      seats: seats.filter(({ person_id }) => [at.ned, at.mia, at.finder, at.thief].includes(person_id))
        .map((seat) => ({ ...seat, institution_id: named(seat.institution_id), person_id: named(seat.person_id) })),
    }
  })

type Act = (at: Scenario) => Effect.Effect<string, never, Services>

/** Accepts an invitation; gives the new role, or the code of the refusal. */
const accepts = (who: "ned" | "mia" | "finder" | "thief", which: "sent" | "first" | "second" = "sent"): Act => (at) =>
  Effect.flatMap(
    Enrollments,
    (enrollments) =>
      Effect.matchEffect(decided(enrollments.accept({ personId: at[who], token: at[which].token })), {
        onFailure: (error) => codeOf(Effect.fail(error)),
        onSuccess: ({ membership }) => Effect.succeed(membership?.role ?? "waits"),
      }),
  )
const takesBack = (who: "ada" | "sam", which: "sent" | "waiting"): Act => (at) =>
  Effect.flatMap(Enrollments, (enrollments) =>
    codeOf(decided(enrollments.revoke({
      institutionId: at.fern,
      personId: at[who],
      reason,
      enrollmentId: which === "sent" ? at.sent.id : at.waiting,
    }))))

/** Runs a command in one transaction, without a pause before its write. */
const atOnce = <A, E extends object>(act: (at: Scenario) => Effect.Effect<A, E, Services>): Act => (at) =>
  codeOf(Effect.provideService(act(at), BeforeWrite, Effect.void))
const claimed = (act: typeof sign | typeof decline) =>
  atOnce((at) =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const [open] = yield* sql<{ id: PolicyReviewId }>`
        select id::text as id from policy_reviews where request_id = ${at.sent.id}::uuid and state = 'open'`
      yield* act(open?.id ?? PolicyReviewId.make("none"), "administrator", at.ada)
    })
  )
const signs = atOnce(({ abe, review }) => sign(review, "administrator", abe))
const declines = atOnce(({ abe, review }) => decline(review, "administrator", abe))
const unseats = atOnce(({ sam }) =>
  Effect.flatMap(
    Database,
    ({ sql }) => sql`update institution_memberships set state = 'ended' where person_id = ${sam}`,
  )
)
const closes = atOnce(({ fern }) =>
  Effect.flatMap(Database, ({ sql }) => sql`update institutions set status = 'suspended' where id = ${fern}`)
)
const suspends = atOnce(({ ned }) =>
  Effect.flatMap(Database, ({ sql }) => sql`update people set status = 'suspended' where id = ${ned}`)
)
/** Where the person has a membership already, the directory's line is refused. */
const seats = (state: "active" | "suspended"): Act => ({ fern, ned }) =>
  member(fern, ned, "member", { state }).pipe(
    Effect.as("done"),
    Effect.catchDefect(() => Effect.succeed("refused")),
    Effect.orDie,
  )
const isBarred = seats("suspended")
const isSeated = seats("active")

const pairs: Readonly<Record<string, readonly [Act, Act, before?: Act]>> = {
  "the invited person, twice": [accepts("ned"), accepts("ned")],
  "the invited person and another holder of the link": [accepts("ned"), accepts("finder")],
  "two other holders of the link": [accepts("finder"), accepts("thief")],
  "another holder, twice": [accepts("finder"), accepts("finder")],
  "an acceptance and a revocation": [accepts("ned"), takesBack("ada", "sent")],
  "another holder and a revocation": [accepts("finder"), takesBack("sam", "sent")],
  "another holder who comes again and a revocation": [
    accepts("finder"),
    takesBack("sam", "sent"),
    (at) => Effect.andThen(accepts("finder")(at), claimed(decline)(at)),
  ],
  "the invited person and an approval of another holder": [accepts("ned"), claimed(sign), accepts("finder")],
  "the invited person and a refusal of another holder": [accepts("ned"), claimed(decline), accepts("finder")],
  "a revocation and an approval of another holder": [takesBack("sam", "sent"), claimed(sign), accepts("finder")],
  "a revocation and a refusal of another holder": [takesBack("sam", "sent"), claimed(decline), accepts("finder")],
  "two revocations": [takesBack("ada", "sent"), takesBack("sam", "sent")],
  "a revocation and an approval": [takesBack("sam", "waiting"), signs],
  "a revocation and a refusal": [takesBack("sam", "waiting"), declines],
  "a revocation and the end of its author's role": [takesBack("sam", "sent"), unseats],
  "an acceptance and the suspension of the institution": [accepts("ned"), closes],
  "an acceptance and the suspension of the person": [accepts("ned"), suspends],
  "an acceptance and a suspended membership": [accepts("ned"), isBarred],
  "an acceptance and a membership from the directory": [accepts("ned"), isSeated],
  "the first two of an institution": [accepts("ned", "first"), accepts("mia", "second")],
}

layer(services, { excludeTestServices: true, timeout: "2 minutes" })("Concurrent commands on an invitation", (it) => {
  for (const [name, [one, other, before]] of Object.entries(pairs)) {
    it.effect(`${name} end as if made one after the other`, () =>
      Effect.gen(function* () {
        const { interleavings, serial } = yield* interleaved(Effect.gen(function* () {
          const at = yield* scenario
          if (before !== undefined) yield* before(at)
          return { commands: [one(at), other(at)] as const, state: stateOf(at) }
        }))
        const known = serial.map((ended) => JSON.stringify(ended))
        for (const ended of interleavings) assert.include(known, JSON.stringify(ended))
      }))
  }

  it.effect("each command takes two round trips", () =>
    Effect.gen(function* () {
      const at = yield* scenario
      assert.deepStrictEqual(yield* counting(accepts("finder")(at)), [2, "waits"])
      assert.deepStrictEqual(yield* counting(accepts("ned")(at)), [2, "member"])
      assert.deepStrictEqual(yield* counting(takesBack("sam", "waiting")(at)), [2, "done"])
      assert.deepStrictEqual(yield* counting(accepts("ned", "first")(at)), [2, "administrator"])
      assert.strictEqual(yield* codeOf(acceptInvitation(at.thief, at.sent.token)), "invalid_state")
    }))
})
