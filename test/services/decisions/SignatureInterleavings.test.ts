/**
 * Two concurrent commands on a policy review, or on what its last signature changes: in any order of their round trips
 * the outcome is that of one after the other.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, type Layer } from "effect"
import type { PersonId, PolicyReviewId } from "../../../schemas/BrandedIds.ts"
import { Enrollments } from "../../../services/decisions/Enrollments.ts"
import { PolicyDecisions } from "../../../services/decisions/PolicyDecisions.ts"
import { Links } from "../../../services/links/Links.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { reason } from "../../support/Fixtures.ts"
import { interleaved } from "../../support/Interleaved.ts"
import { counting } from "../../support/Statements.ts"
import { member, person, project } from "../../support/TestIdentity.ts"
import { asked } from "../links/LinkSteps.ts"
import {
  acceptInvitation,
  askAccess,
  changeMembership,
  codeOf,
  decided,
  enroll,
  fixture,
  founded,
  organization,
  services,
  sign,
  tokenOf,
} from "./RequestFixture.ts"

type Services = Layer.Success<typeof services>

const idOf = (of: { readonly policy_review: { readonly review_id: PolicyReviewId } | null }) =>
  of.policy_review!.review_id

/** What a pair of commands needs of the scenario: made for every pair, all of it took two thirds of the time. */
type Part = "access" | "again" | "role" | "invitation" | "claim" | "founding" | "link" | "moss"
const whole: ReadonlyArray<Part> = ["access", "again", "role", "invitation", "claim", "founding", "link", "moss"]

/**
 * Requests of these kinds, each waiting for its signatures: `again` is one of Access by another name of the same person,
 * `claim` the invitation of a person whose place another has accepted, `moss` an institution whose approver is oz, with its
 * first two enrollments.
 */
const scenario = Effect.fnUntraced(function* (parts: ReadonlyArray<Part>) {
  const w = yield* fixture
  const [ned, mo, gil, one, other, alias] = yield* Effect.all([
    person(),
    person(),
    person(),
    person(),
    person(),
    person(),
  ])
  const portal = yield* project(w.fern)
  const { sql } = yield* Database
  const made = <A, E, R>(part: Part, makes: Effect.Effect<A, E, R>) =>
    parts.includes(part) ? makes : Effect.succeed(undefined)
  const access = yield* made("access", askAccess(w.fern, portal, w.pat))
  const again = yield* made("again", askAccess(w.fern, portal, alias))
  yield* sql`update people set merged_into = ${w.pat} where id = ${alias}`
  const role = yield* made("role", changeMembership(w, w.ada, ned, "member", "active"))
  const invitation = yield* made("invitation", enroll(w.fern, w.sam, `${ned}@example.com`))
  const claimed = yield* made(
    "claim",
    Effect.gen(function* () {
      const sent = yield* enroll(w.fern, w.sam, `${ned}@example.com`)
      yield* sign(sent, "administrator", w.ada)
      const token = yield* tokenOf(sent.enrollment_id)
      return { sent, token, claim: yield* acceptInvitation(one, token) }
    }),
  )
  const founding = yield* made("founding", organization(mo))
  const link = yield* made("link", asked(one, other))
  const grown = yield* made(
    "moss",
    Effect.gen(function* () {
      const grove = yield* organization(gil)
      yield* sign(grove, "operator", w.oz)
      const moss = yield* founded(grove.request_id)
      return {
        moss,
        first: yield* enroll(moss, gil, "a@moss.example"),
        second: yield* enroll(moss, gil, "b@moss.example"),
      }
    }),
  )
  const reviews = {
    access: access && idOf(access),
    again: again && idOf(again),
    role: role && idOf(role),
    invitation: invitation && idOf(invitation),
    claim: claimed && idOf(claimed.claim),
    founding: founding && idOf(founding),
    link: link && idOf(link),
    first: grown && idOf(grown.first),
    second: grown && idOf(grown.second),
  }
  const people = { ...w, ned, mo, gil, one, other, alias }
  return {
    ...people,
    people,
    portal,
    moss: grown?.moss,
    reviews,
    token: claimed?.token,
    requests: {
      access: access?.request_id,
      role: role?.request_id,
      founding: founding?.request_id,
      link: link?.link_request_id,
      invitation: invitation?.enrollment_id,
      sent: claimed?.sent.enrollment_id,
    },
  }
})
type Scenario = Effect.Success<ReturnType<typeof scenario>>
type Review = keyof Scenario["reviews"]

const stateOf = (at: Scenario) =>
  Effect.gen(function* () {
    const { sql } = yield* Database
    const names = new Map(Object.entries(at.people).map(([name, id]) => [id, name]))
    const named = (id: PersonId) => names.get(id) ?? "somebody"
    const reviews = yield* sql<{ id: string; signed: ReadonlyArray<readonly [string, PersonId]> | null }>`
      select v.state, v.declined_role, r.state as request, r.withdrawn, r.revision, r.result_id is not null as result,
        r.event_id is not null as event, r.effective_at is not null as effective,
        exists (select from timers t where t.aggregate_id = r.id::text) as timed,
        (select json_agg(json_build_array(a.role, a.person_id) order by a.role) from policy_approvals a
          where a.review_id = v.id) as signed,
        (select json_agg(a.action order by a.action) from audit_records a
          where a.subject in ('request:' || r.id, 'policy-review:' || v.id)) as audited,
        (select count(*)::int from mails m where m.subject_id = r.id::text) as mailed
      from unnest(${Object.values(at.reviews).filter((id) => id !== undefined)}::uuid[]) with ordinality o(id, nth)
      join policy_reviews v on v.id = o.id join requests r on r.id = v.request_id order by o.nth`
    const access = yield* sql`
      select a.person_id = ${at.pat} as pats, a.access_version, a.state, cardinality(a.approved_by) as signers,
        v.digest is not null as whole
      from access a left join access_versions v on v.access_id = a.id and v.access_version = a.access_version
      where a.project_id = ${at.portal}`
    const kinds = yield* sql<{ kind: string }>`
      select kind, position::int from lifecycle_events where project_id = ${at.portal} order by position`
    const seats = yield* sql<{ person_id: PersonId }>`
      select person_id, role, state, revision, cardinality(approved_by) as signers from institution_memberships
      where institution_id in (${at.fern}, ${
      at.moss ?? null
    }) order by institution_id = ${at.fern}, role, person_id, id`
    const institutions = yield* sql`select name, status from institutions where made_by = ${at.mo} order by created_at`
    return {
      reviews: reviews.map((row) => ({ ...row, signed: (row.signed ?? []).map(([role, id]) => [role, named(id)]) })),
      access,
      kinds,
      institutions,
      seats: seats.map((row) => ({ ...row, person_id: named(row.person_id) })).map((row) => JSON.stringify(row)).sort(),
    }
  })

interface Act {
  readonly needs: ReadonlyArray<Part>
  readonly run: (at: Scenario) => Effect.Effect<string, never, Services>
}
type Who = "sam" | "ada" | "abe" | "oz" | "ola"

const partOf = (review: Review): Part => review === "first" || review === "second" ? "moss" : review

const decision = (at: Scenario, review: Review, role: string, who: Who) => ({
  personId: at[who],
  reviewId: at.reviews[review]!,
  role,
  reason,
  stepUp: Effect.void,
})
const signs = (review: Review, role: string, who: Who): Act => ({
  needs: [partOf(review)],
  run: (at) =>
    Effect.flatMap(PolicyDecisions, (policies) => codeOf(decided(policies.approve(decision(at, review, role, who))))),
})
const declines = (review: Review, role: string, who: Who): Act => ({
  needs: [partOf(review)],
  run: (at) =>
    Effect.flatMap(PolicyDecisions, (policies) => codeOf(decided(policies.decline(decision(at, review, role, who))))),
})
const takesBack = (which: "sent" | "invitation"): Act => ({
  needs: [which === "sent" ? "claim" : which],
  run: (at) =>
    Effect.flatMap(Enrollments, (enrollments) =>
      codeOf(decided(enrollments.revoke({
        institutionId: at.fern,
        personId: at.sam,
        enrollmentId: at.requests[which]!,
        reason,
      })))),
})
const withdrawsOwn = (
  of: "access" | "role" | "founding" | "link" | "invitation" | "sent",
  who: "pat" | "ada" | "mo" | "one" | "sam",
): Act => ({
  needs: [of === "sent" ? "claim" : of],
  run: (at) =>
    Effect.flatMap(
      PolicyDecisions,
      (policies) => codeOf(decided(policies.withdraw({ personId: at[who], requestId: at.requests[of]!, reason }))),
    ),
})
const accepts: Act = {
  needs: ["claim"],
  run: ({ ned, token }) =>
    Effect.flatMap(Enrollments, (enrollments) => codeOf(decided(enrollments.accept({ personId: ned, token: token! })))),
}
const objects: Act = {
  needs: ["link"],
  run: ({ other, requests }) =>
    Effect.flatMap(
      Links,
      (links) => codeOf(decided(links.object({ personId: other, linkRequestId: requests.link!, reason: null }))),
    ),
}

/** A change by one statement of something that the concurrent command depends on. */
const changes = (
  statement: (at: Scenario, sql: Database["Service"]["sql"]) => Effect.Effect<unknown, unknown>,
  needs: ReadonlyArray<Part> = [],
): Act => ({
  needs,
  run: (at) => Effect.flatMap(Database, ({ sql }) => Effect.as(Effect.orDie(statement(at, sql)), "done")),
})
const leaves = changes(({ ada }, sql) =>
  sql`update institution_memberships set state = 'ended' where person_id = ${ada} and state = 'active'`
)
const demotes = changes(({ oz }, sql) => sql`update people set operator = false where id = ${oz}`)
const closes = changes(({ fern }, sql) => sql`update institutions set status = 'suspended' where id = ${fern}`)
const withdraws = changes(({ portal }, sql) => sql`update projects set state = 'withdrawn' where id = ${portal}`)
const moves = changes(
  ({ moss, portal }, sql) => sql`update projects set institution_id = ${moss!} where id = ${portal}`,
  ["moss"],
)
const suspends = (who: "pat" | "mo" | "one") =>
  changes((at, sql) => sql`update people set status = 'suspended' where id = ${at[who]}`)
const isSeated: Act = {
  needs: ["role"],
  run: ({ fern, ned }) =>
    member(fern, ned, "member").pipe(
      Effect.as("done"),
      Effect.catchDefect(() => Effect.succeed("refused")),
      Effect.orDie,
    ),
}

const [bySponsor, byAda, byAbe] = [
  signs("access", "sponsor", "sam"),
  signs("access", "administrator", "ada"),
  signs("access", "administrator", "abe"),
]
const samToo = signs("again", "sponsor", "sam")
const both: Act = {
  needs: [...bySponsor.needs, ...samToo.needs],
  run: (at) => Effect.andThen(bySponsor.run(at), samToo.run(at)),
}

const pairs: Readonly<Record<string, readonly [Act, Act, before?: Act]>> = {
  "both roles of one request": [bySponsor, byAda],
  "two signatures for one role": [byAda, byAbe],
  "one person's signature twice": [byAda, byAda],
  "two last signatures": [byAda, byAbe, bySponsor],
  "a signature and a refusal": [bySponsor, declines("access", "administrator", "abe")],
  "a last signature and a refusal": [byAda, declines("access", "administrator", "abe"), bySponsor],
  "two refusals": [declines("access", "administrator", "ada"), declines("access", "administrator", "abe")],
  "a signature and the end of the signer's role": [byAda, leaves],
  "a last signature and the end of the signer's role": [byAda, leaves, bySponsor],
  "a refusal and the end of the signer's role": [declines("access", "administrator", "ada"), leaves],
  "a last signature and the suspension of the institution": [byAda, closes, bySponsor],
  "a last signature and the withdrawal of the project": [byAda, withdraws, bySponsor],
  "a last signature and a move of the project": [byAda, moves, bySponsor],
  "a last signature and the suspension of the author": [byAda, suspends("pat"), bySponsor],
  "the last signatures of one person's two requests": [byAda, signs("again", "administrator", "abe"), both],
  "a signature and the author's withdrawal": [bySponsor, withdrawsOwn("access", "pat")],
  "a last signature and the author's withdrawal": [byAda, withdrawsOwn("access", "pat"), bySponsor],
  "a refusal and the author's withdrawal": [
    declines("access", "administrator", "ada"),
    withdrawsOwn("access", "pat"),
  ],
  "two withdrawals of one request": [withdrawsOwn("access", "pat"), withdrawsOwn("access", "pat")],
  "a signature of a membership and its author's withdrawal": [
    signs("role", "sponsor", "sam"),
    withdrawsOwn("role", "ada"),
  ],
  "an operator's approval of an institution and its author's withdrawal": [
    signs("founding", "operator", "oz"),
    withdrawsOwn("founding", "mo"),
  ],
  "an approval of an invitation and its author's withdrawal": [
    signs("invitation", "administrator", "abe"),
    withdrawsOwn("invitation", "sam"),
  ],
  "the acceptance of an invitation and its author's withdrawal": [accepts, withdrawsOwn("sent", "sam")],
  "an operator's approval of a link and its author's withdrawal": [
    signs("link", "operator", "oz"),
    withdrawsOwn("link", "one"),
  ],
  "an objection to a link and its author's withdrawal": [objects, withdrawsOwn("link", "one")],
  "both roles of a membership": [signs("role", "sponsor", "sam"), signs("role", "administrator", "abe")],
  "the last signature of a membership and the membership from the directory": [
    signs("role", "administrator", "abe"),
    isSeated,
  ],
  "an approval of an invitation and its revocation": [
    signs("invitation", "administrator", "abe"),
    takesBack("invitation"),
  ],
  "a refusal of an invitation and its revocation": [
    declines("invitation", "administrator", "abe"),
    takesBack("invitation"),
  ],
  "an approval of another holder and the invited person": [signs("claim", "administrator", "abe"), accepts],
  "a refusal of another holder and the invited person": [declines("claim", "administrator", "abe"), accepts],
  "an approval of another holder and the invitation's revocation": [
    signs("claim", "administrator", "abe"),
    takesBack("sent"),
  ],
  "an approval of another holder and that person's suspension": [
    signs("claim", "administrator", "abe"),
    suspends("one"),
  ],
  "two operators' approvals of an institution": [
    signs("founding", "operator", "oz"),
    signs("founding", "operator", "ola"),
  ],
  "an operator's approval of an institution and the end of the operator's right": [
    signs("founding", "operator", "oz"),
    demotes,
  ],
  "an operator's approval of an institution and the suspension of its author": [
    signs("founding", "operator", "oz"),
    suspends("mo"),
  ],
  "the institution's approver on both of its first enrollments": [
    signs("first", "administrator", "oz"),
    signs("second", "administrator", "oz"),
  ],
  "the institution's approver and another operator on its first enrollments": [
    signs("first", "administrator", "oz"),
    signs("second", "administrator", "ola"),
  ],
  "an operator's approval of a link and the other side's objection": [signs("link", "operator", "oz"), objects],
  "an operator's refusal of a link and the other side's objection": [declines("link", "operator", "oz"), objects],
}

layer(services, { excludeTestServices: true, timeout: "2 minutes" })("Concurrent commands on a policy review", (it) => {
  for (const [name, [one, other, before]] of Object.entries(pairs)) {
    it.effect(`${name} end as if made one after the other`, () =>
      Effect.gen(function* () {
        const { interleavings, serial } = yield* interleaved(Effect.gen(function* () {
          const at = yield* scenario([one, other, before].flatMap((act) => act?.needs ?? []))
          if (before !== undefined) assert.strictEqual(yield* before.run(at), "done")
          return { commands: [one.run(at), other.run(at)] as const, state: stateOf(at) }
        }))
        const known = serial.map((ended) => JSON.stringify(ended))
        assert.isTrue(serial.some(({ outcomes }) => outcomes.includes("done")), known.join("\n"))
        for (const ended of interleavings) assert.include(known, JSON.stringify(ended))
      }))
  }

  it.effect("a signature takes two round trips, a last one three or, for a project's first Access, four", () =>
    Effect.gen(function* () {
      const at = yield* scenario(whole)
      // This Access makes the project's first event, and so its head row, outside of what is counted below.
      const first = yield* askAccess(at.fern, at.portal, at.other)
      for (const [role, who] of [["sponsor", at.sam], ["administrator", at.ada]] as const) yield* sign(first, role, who)
      const expected: ReadonlyArray<readonly [Act, number]> = [
        [bySponsor, 2],
        [byAda, 4],
        [signs("again", "sponsor", "sam"), 2],
        [signs("again", "administrator", "ada"), 3],
        [signs("role", "sponsor", "sam"), 2],
        [signs("role", "administrator", "abe"), 3],
        [signs("founding", "operator", "oz"), 3],
        [signs("invitation", "administrator", "abe"), 2],
        [signs("claim", "administrator", "abe"), 3],
        [declines("link", "operator", "ola"), 2],
      ]
      for (const [act, statements] of expected) {
        assert.deepStrictEqual(yield* counting(act.run(at)), [statements, "done"])
      }
    }))
})
