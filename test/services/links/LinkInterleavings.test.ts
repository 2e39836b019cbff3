/** Two concurrent commands on a link: in any order of their round trips the outcome is that of one after the other. */
import { assert, layer } from "@effect/vitest"
import { Effect, type Layer } from "effect"
import type { PersonId } from "../../../schemas/BrandedIds.ts"
import { Links } from "../../../services/links/Links.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { BeforeWrite } from "../../../services/platform/database/FencedWrite.ts"
import { reason } from "../../support/Fixtures.ts"
import { interleaved } from "../../support/Interleaved.ts"
import { counting } from "../../support/Statements.ts"
import { member, person } from "../../support/TestIdentity.ts"
import { tokenFor } from "../../support/TestTokens.ts"
import { codeOf, decided, decline, fixture, services, sign } from "../decisions/RequestFixture.ts"
import { ask, prove, settledNow } from "./LinkSteps.ts"

type Services = Layer.Success<typeof services>

/** Three people; `one` and `third` hold proofs of `other`'s identity, and `link` asks for `wanted`'s. */
const scenario = Effect.gen(function* () {
  const w = yield* fixture
  const [one, third, other, wanted] = yield* Effect.all([person(), person(), person(), person()])
  const proofs = {
    one: (yield* prove(one, yield* tokenFor(other))).proof_id,
    third: (yield* prove(third, yield* tokenFor(other))).proof_id,
  }
  const link = yield* ask(one, (yield* prove(one, yield* tokenFor(wanted))).proof_id)
  const merging = yield* ask(third, (yield* prove(third, yield* tokenFor(other))).proof_id)
  return { ...w, one, third, other, wanted, proofs, token: yield* tokenFor(other), link, merging }
})
type Scenario = Effect.Success<typeof scenario>

const stateOf = (at: Scenario) =>
  Effect.gen(function* () {
    const { sql } = yield* Database
    const names = new Map(Object.entries(at).map(([name, id]) => [id, name]))
    const requests = yield* sql<{ author: PersonId; person_id: PersonId }>`
      select r.author, r.person_id, r.state, r.revision, r.effective_at is not null as approved,
        r.result_id is not null as result, exists (select from timers t where t.aggregate_id = r.id::text) as timed,
        (select json_agg(json_build_array(v.kind, v.state) order by v.id) from policy_reviews v
          where v.request_id = r.id) as reviews,
        (select count(*)::int from mails m where m.subject_id = r.id::text) as mailed,
        (select json_agg(a.action order by a.action) from audit_records a
          where a.subject = 'request:' || r.id) as audited
      from requests r where r.author in (${at.one}, ${at.third}) order by r.author = ${at.one}, r.created_at, r.id`
    const proofs = yield* sql<{ person_id: PersonId }>`
      select person_id, consumed_at is not null as consumed,
        (select count(*)::int from audit_records a where a.subject = 'link-proof:' || p.id) as audited
      from link_proofs p where person_id in (${at.one}, ${at.third}) order by person_id = ${at.one}, created_at, id`
    const merged = yield* sql<{ id: string; merged_into: string | null }>`
      select id, merged_into from people where id in (${at.other}, ${at.wanted}) order by id = ${at.other}`
    return {
      requests: requests.map((row) => ({ ...row, author: names.get(row.author), person_id: names.get(row.person_id) })),
      proofs: proofs.map((row) => ({ ...row, person_id: names.get(row.person_id) })),
      merged: merged.map(({ merged_into }) => merged_into === null ? null : names.get(merged_into)),
    }
  })

type Act = (at: Scenario) => Effect.Effect<string, never, Services>

const proves = (who: "one" | "third"): Act => (at) =>
  Effect.flatMap(Links, (links) => codeOf(decided(links.prove({ personId: at[who], token: at.token }))))
const asks = (who: "one" | "third"): Act => (at) =>
  Effect.flatMap(
    Links,
    (links) => codeOf(decided(links.request({ personId: at[who], proof_id: at.proofs[who], reason }))),
  )
const objects: Act = ({ link: { link_request_id }, wanted }) =>
  Effect.flatMap(
    Links,
    (links) => codeOf(decided(links.object({ personId: wanted, linkRequestId: link_request_id, reason: null }))),
  )

/** Runs a command in one transaction, without a pause before its write. */
const atOnce = <A, E extends object>(act: (at: Scenario) => Effect.Effect<A, E, Services>): Act => (at) =>
  codeOf(Effect.provideService(act(at), BeforeWrite, Effect.void))
const writes = (statement: (at: Scenario, sql: Database["Service"]["sql"]) => Effect.Effect<unknown, object>) =>
  atOnce((at) => Effect.flatMap(Database, ({ sql }) => statement(at, sql)))

const approves = atOnce(({ link, oz }) => sign(link, "operator", oz))
const declines = atOnce(({ link, oz }) => decline(link, "operator", oz))
const takesEffect = atOnce(({ link }) => settledNow(link.link_request_id))
const otherLinkEnds = atOnce(({ merging, oz }) => decline(merging, "operator", oz))
const otherMerges = atOnce(({ merging }) => settledNow(merging.link_request_id))
const suspends = writes(({ other }, sql) => sql`update people set status = 'suspended' where id = ${other}`)
const joins = atOnce(({ fern, other }) => member(fern, other, "member"))

const approved: Act = approves
const free: Act = otherLinkEnds
const otherApproved = atOnce(({ merging, oz }) => sign(merging, "operator", oz))

const pairs: Readonly<Record<string, readonly [Act, Act, before?: Act]>> = {
  "two proofs by one token": [proves("one"), proves("third")],
  "a proof and the suspension of its person": [proves("one"), suspends],
  "two requests for one identity": [asks("one"), asks("third"), free],
  "two requests by one proof": [asks("one"), asks("one"), free],
  "a request and the suspension of the other side": [asks("one"), suspends, free],
  "a request and a membership of the other side": [asks("one"), joins, free],
  "a request and the refusal of another person's request": [asks("one"), otherLinkEnds],
  "a request and another person's link that takes effect": [asks("one"), otherMerges, otherApproved],
  "two objections": [objects, objects],
  "an objection and an approval": [objects, approves],
  "an objection and a refusal": [objects, declines],
  "an objection and the link's effect": [objects, takesEffect, approved],
}

layer(services, { excludeTestServices: true, timeout: "2 minutes" })("Concurrent commands on a link", (it) => {
  for (const [name, [one, other, before]] of Object.entries(pairs)) {
    it.effect(`${name} end as if made one after the other`, () =>
      Effect.gen(function* () {
        const { interleavings, serial } = yield* interleaved(Effect.gen(function* () {
          const at = yield* scenario
          if (before !== undefined) assert.strictEqual(yield* before(at), "done")
          return { commands: [one(at), other(at)] as const, state: stateOf(at) }
        }))
        const known = serial.map((ended) => JSON.stringify(ended))
        for (const ended of interleavings) assert.include(known, JSON.stringify(ended))
      }))
  }

  it.effect("two first requests for one identity at the same moment make one", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      for (let i = 0; i < 10; i++) {
        const at = yield* scenario
        yield* free(at)
        const both = yield* Effect.all([asks("one")(at), asks("third")(at)], { concurrency: 2 })
        assert.sameMembers(both, ["done", "request_exists"])
        const open = yield* sql`
          select from requests where kind = 'link' and state = 'pending_review' and fields ->> 'subject' = ${at.other}`
        assert.lengthOf(open, 1)
      }
    }))

  it.effect("each command takes two round trips", () =>
    Effect.gen(function* () {
      const at = yield* scenario
      yield* free(at)
      assert.deepStrictEqual(yield* counting(proves("one")(at)), [2, "done"])
      assert.deepStrictEqual(yield* counting(asks("one")(at)), [2, "done"])
      assert.deepStrictEqual(yield* counting(objects(at)), [2, "done"])
    }))
})
