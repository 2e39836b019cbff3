/** Campaigns: opened over a set of Accesses, answered by owners and delegates, and never a revocation by themselves. */
import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Schedule } from "effect"
import { TestClock } from "effect/testing"
import { randomUUID } from "node:crypto"
import { AccessId, CampaignId, CampaignItemId, type PersonId, ProjectId } from "../../../schemas/BrandedIds.ts"
import type { CampaignCreate, CampaignItem } from "../../../schemas/identity/Campaign.ts"
import { Institutions } from "../../../services/access/Institutions.ts"
import { OverdueReviews } from "../../../services/access/OverdueReviews.ts"
import { Campaigns } from "../../../services/decisions/Campaigns.ts"
import { endCampaigns } from "../../../services/decisions/Campaigns/EndedCampaigns.ts"
import { mostLooked } from "../../../services/decisions/Campaigns/OpenCampaign.ts"
import { Requests } from "../../../services/decisions/Requests.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { run } from "../../../services/platform/database/UnitOfWork.ts"
import { day, reason, start, timed } from "../../support/Fixtures.ts"
import { access, member, owner, person, project, tell } from "../../support/TestIdentity.ts"
import { codeOf, fire, fixture as fern, requestRow, services, sign } from "./RequestFixture.ts"

const fixture = Effect.gen(function* () {
  const w = yield* fern
  const [ona, user, other, mo] = yield* Effect.all([person(), person(), person(), person()])
  const portal = yield* project(w.fern)
  yield* owner(portal, ona)
  yield* member(w.fern, mo, "member")
  const accesses = [yield* access(w.fern, portal, user), yield* access(w.fern, portal, other)].sort()
  return { ...w, ona, mo, user, portal, accesses, aud: yield* person({ auditor: true }) }
})
type Fixture = Effect.Success<typeof fixture>
type Opened = Effect.Success<ReturnType<typeof open>>

const open = ({ ada, fern }: Fixture, more: Partial<CampaignCreate> = {}, personId: PersonId = ada, days = 10) =>
  Effect.flatMap(Campaigns, (campaigns) =>
    run(campaigns.open({
      personId,
      institutionId: fern,
      name: "Spring",
      reason,
      deadline: new Date(start + days * day).toISOString(),
      ...more,
    })))

const close = ({ ada, fern }: Fixture, { campaign_id }: Opened, personId: PersonId = ada) =>
  Effect.flatMap(
    Campaigns,
    (campaigns) => run(campaigns.close({ personId, institutionId: fern, campaignId: campaign_id, reason })),
  )

const itemsOf = ({ fern, sam }: Fixture, { campaign_id }: Opened, state?: string, personId: PersonId = sam) =>
  Effect.flatMap(Campaigns, ({ items }) => items(personId, fern, campaign_id, { limit: 100, afterId: null, state }))

const itemOf = Effect.fnUntraced(function* (w: Fixture, campaign: Opened, accessId: AccessId) {
  const { items } = yield* itemsOf(w, campaign)
  return items.find(({ access_id }) => access_id === accessId)!
})

const on = ({ fern }: Fixture, { campaign_id, item_id }: Pick<CampaignItem, "campaign_id" | "item_id">) => ({
  institutionId: fern,
  campaignId: campaign_id,
  itemId: item_id,
})

const answer = (
  w: Fixture,
  item: Pick<CampaignItem, "campaign_id" | "item_id">,
  personId: PersonId,
  answer: "confirm" | "propose_revocation" = "confirm",
) => Effect.flatMap(Campaigns, (campaigns) => run(campaigns.answer({ ...on(w, item), personId, answer, reason })))

const delegate = (w: Fixture, item: CampaignItem, personId: PersonId, delegate: PersonId | null) =>
  Effect.flatMap(Campaigns, (campaigns) => run(campaigns.delegate({ ...on(w, item), personId, delegate, reason })))

const mine = (personId: PersonId, afterId: string | null = null, limit = 100) =>
  Effect.map(
    Effect.flatMap(Campaigns, ({ mine }) => mine(personId, { limit, afterId })),
    ({ items }) => items.map(({ access_id }) => access_id),
  )

const auditOf = ({ campaign_id }: Opened) =>
  Effect.gen(function* () {
    const { sql } = yield* Database
    const rows = yield* sql<{ action: string }>`
      select action from audit_records where subject = ${`campaign:${campaign_id}`} order by id`
    return rows.map(({ action }) => action)
  })

const there = Layer.mergeAll(Campaigns.layer, Institutions.layer, OverdueReviews.layer).pipe(
  Layer.provideMerge(services),
)

layer(there, { excludeTestServices: true, timeout: "2 minutes" })("campaigns", (it) => {
  it.effect("an owner confirms one Access and proposes another, which an administrator then decides", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const campaign = yield* open(w)
      assert.deepInclude(campaign, { state: "open", opened_by: w.ada, closed: null, name: "Spring" })
      assert.deepInclude(campaign.items, { total: 2, open: 2 })
      assert.deepStrictEqual(yield* mine(w.ona), w.accesses)
      assert.deepStrictEqual(yield* mine(w.sam), [])

      const [first, second] = (yield* itemsOf(w, campaign)).items
      const confirmed = yield* answer(w, first!, w.ona)
      assert.deepInclude(confirmed, { state: "confirmed", revocation: null, access_id: w.accesses[0]! })
      assert.deepStrictEqual(confirmed.answer, { person_id: w.ona, at: new Date(start).toISOString(), reason })
      assert.isNotNull(confirmed.confirmation_id)
      const proposed = yield* answer(w, second!, w.ona, "propose_revocation")
      assert.deepInclude(proposed, { state: "proposed_for_revocation", confirmation_id: null })
      assert.strictEqual(proposed.revocation?.state, "submitted")
      assert.strictEqual(yield* codeOf(answer(w, first!, w.ona, "propose_revocation")), "invalid_state")
      const { explain } = yield* Institutions
      assert.deepStrictEqual((yield* explain(w.sam, w.fern, first!.access_id)).confirmations, [{
        access_version: 1,
        person_id: w.ona,
        confirmed_at: new Date(start).toISOString(),
        reason,
        campaign_id: campaign.campaign_id,
      }])
      assert.deepStrictEqual(yield* mine(w.ona), [])

      // Nothing is revoked until an administrator, who is another person, has signed.
      const { sql } = yield* Database
      const active = sql`select from access where project_id = ${w.portal} and state = 'active'`
      yield* fire
      assert.lengthOf(yield* active, 2)
      yield* sign(proposed.revocation!.review_id!, "administrator", w.abe)
      yield* fire
      assert.lengthOf(yield* active, 1)
      assert.strictEqual((yield* itemOf(w, campaign, w.accesses[1]!)).revocation?.state, "approved")
      assert.strictEqual((yield* itemOf(w, campaign, w.accesses[1]!)).state, "proposed_for_revocation")

      const closed = yield* close(w, campaign, w.abe)
      assert.deepInclude(closed, {
        state: "closed",
        closed: { person_id: w.abe, at: new Date(start).toISOString(), reason },
      })
      assert.deepInclude(closed.items, { total: 2, confirmed: 1, proposed_for_revocation: 1, open: 0 })
      assert.deepStrictEqual(yield* auditOf(campaign), [
        "campaign.opened",
        "campaign.answered",
        "campaign.answered",
        "campaign.closed",
      ])
      // What was answered stays, also against this program.
      const change =
        sql`update campaign_items set outcome = 'open', answered_by = null, answered_at = null, reason = null,
        confirmation_id = null where id = ${first!.item_id}::uuid`
      assert.strictEqual((yield* Effect.flip(change))._tag, "SqlError")
    })))

  it.effect("a delegate answers beside the owners, never about the own Access, while a membership counts", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const own = yield* access(w.fern, w.portal, w.ona)
      const campaign = yield* open(w)
      const first = yield* itemOf(w, campaign, w.accesses[0]!)
      const of = yield* itemOf(w, campaign, own)
      // The only owner's own Access has no reviewer until it is delegated.
      assert.notInclude(yield* mine(w.ona), own)
      assert.strictEqual(yield* codeOf(answer(w, of, w.ona)), "four_eyes_required")
      assert.strictEqual(yield* codeOf(delegate(w, of, w.ona, w.mo)), "four_eyes_required")
      assert.strictEqual(yield* codeOf(delegate(w, of, w.ada, w.ona)), "four_eyes_required")
      assert.strictEqual(yield* codeOf(delegate(w, of, w.ada, w.pat)), "not_found")
      assert.strictEqual(yield* codeOf(delegate(w, of, w.sam, w.mo)), "role_required")
      assert.strictEqual(yield* codeOf(answer(w, of, w.mo)), "role_required")
      assert.deepInclude(yield* delegate(w, of, w.ada, w.mo), { delegate_person_id: w.mo, state: "open" })
      assert.deepStrictEqual(yield* mine(w.mo), [own])

      yield* delegate(w, first, w.ona, w.mo)
      yield* delegate(w, first, w.ona, null)
      assert.strictEqual(yield* codeOf(answer(w, first, w.mo)), "role_required")

      const { sql } = yield* Database
      const seat = (state: string) =>
        sql`
        update institution_memberships set state = ${state} where person_id = ${w.mo} and institution_id = ${w.fern}`
      yield* seat("suspended")
      assert.deepStrictEqual(yield* mine(w.mo), [])
      assert.strictEqual(yield* codeOf(answer(w, of, w.mo)), "role_required")
      yield* seat("active")
      assert.deepInclude(yield* answer(w, of, w.mo), { state: "confirmed", delegate_person_id: w.mo })
      for (const [by, code] of [[w.ada, "role_required"], [w.sam, "role_required"], [w.oz, "role_required"]] as const) {
        assert.strictEqual(yield* codeOf(answer(w, first, by)), code)
      }
      assert.strictEqual(yield* codeOf(answer(w, first, w.pat)), "not_found")
    })))

  it.effect("an item ends with its Access's version or with its campaign, whichever is first, and stays so", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const campaign = yield* open(w)
      const [first, second] = (yield* itemsOf(w, campaign)).items
      yield* TestClock.adjust(day)
      const line = { institution_id: w.fern, project_id: w.portal, state: "active" }
      yield* tell("access", { ...line, id: first!.access_id, version: 2, person_id: first!.person_id, role: "editor" })
      assert.strictEqual((yield* itemOf(w, campaign, first!.access_id)).state, "withdrawn")
      assert.strictEqual(yield* codeOf(answer(w, first!, w.ona)), "invalid_state")
      assert.deepStrictEqual(yield* mine(w.ona), [second!.access_id])

      yield* TestClock.adjust(9 * day)
      const { fern, sam } = w
      const read = () => Effect.flatMap(Campaigns, ({ read }) => read(sam, fern, campaign.campaign_id))
      assert.deepInclude(yield* read(), { state: "closed", closed: null })
      assert.deepInclude((yield* read()).items, { withdrawn: 1, unanswered: 1, open: 0 })
      assert.strictEqual(yield* codeOf(answer(w, second!, w.ona)), "invalid_state")
      assert.strictEqual(yield* codeOf(close(w, campaign)), "invalid_state")
      assert.deepStrictEqual(yield* mine(w.ona), [])
      yield* TestClock.adjust(1)
      yield* tell("access", {
        ...line,
        id: second!.access_id,
        version: 2,
        person_id: second!.person_id,
        role: "editor",
      })
      assert.strictEqual((yield* itemOf(w, campaign, second!.access_id)).state, "unanswered")
      for (const [state, n] of [["withdrawn", 1], ["unanswered", 1], ["open", 0], ["confirmed", 0]] as const) {
        assert.lengthOf((yield* itemsOf(w, campaign, state)).items, n)
      }
    })))

  it.effect("an administrator opens it over Accesses, projects or overdue reviews of the institution alone", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const elsewhere = yield* fixture
      const garden = yield* project(w.fern)
      const there = yield* access(w.fern, garden, w.pat)
      const of = (more: Partial<CampaignCreate>) =>
        Effect.flatMap(
          open(w, more),
          (campaign) => Effect.map(itemsOf(w, campaign), ({ items }) => items.map(({ access_id }) => access_id).sort()),
        )
      assert.deepStrictEqual(yield* of({}), [...w.accesses, there].sort())
      assert.deepStrictEqual(yield* of({ project_ids: [garden, garden] }), [there])
      assert.deepStrictEqual(yield* of({ access_ids: [there, w.accesses[0]!] }), [there, w.accesses[0]!].sort())
      assert.strictEqual(yield* codeOf(of({ access_ids: w.accesses, project_ids: [garden] })), "invalid_state")
      assert.strictEqual(yield* codeOf(of({ overdue: true })), "invalid_state")
      for (const access_id of [AccessId.make("nothing"), elsewhere.accesses[0]!]) {
        assert.strictEqual(yield* codeOf(of({ access_ids: [access_id] })), "HTTPValidationError")
      }
      for (const project_id of [ProjectId.make("nothing"), elsewhere.portal]) {
        assert.strictEqual(yield* codeOf(of({ project_ids: [project_id] })), "HTTPValidationError")
      }
      for (const days of [0, 367]) {
        assert.strictEqual(yield* codeOf(open(w, {}, w.ada, days)), "HTTPValidationError")
      }
      for (const by of [w.sam, w.mo]) assert.strictEqual(yield* codeOf(open(w, {}, by)), "role_required")
      for (const by of [w.oz, w.ona, elsewhere.ada]) assert.strictEqual(yield* codeOf(open(w, {}, by)), "not_found")

      yield* TestClock.adjust(365 * day)
      yield* tell("access", {
        id: there,
        version: 2,
        institution_id: w.fern,
        project_id: garden,
        person_id: w.pat,
        role: "editor",
        state: "active",
      })
      const late = { deadline: new Date(start + 366 * day).toISOString() }
      assert.deepStrictEqual(yield* of({ overdue: true, ...late }), w.accesses)
      const confirming = yield* open(w, { overdue: true, ...late })
      for (const item of (yield* itemsOf(w, confirming)).items) yield* answer(w, item, w.ona)
      const { list } = yield* OverdueReviews
      assert.deepStrictEqual((yield* list(w.sam, w.fern, { limit: 10, afterId: null })).items, [])
    })))

  it.effect("an administrator moves the deadline of an open campaign, and not of one that has ended", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const elsewhere = yield* fixture
      const campaign = yield* open(w)
      const move = (days: number, personId: PersonId = w.ada, institutionId = w.fern) =>
        Effect.flatMap(Campaigns, ({ reschedule }) =>
          run(reschedule({
            personId,
            institutionId,
            campaignId: campaign.campaign_id,
            deadline: new Date(start + days * day).toISOString(),
            reason,
          })))
      for (const days of [0, 367]) assert.strictEqual(yield* codeOf(move(days)), "HTTPValidationError")
      for (const by of [w.sam, w.mo]) assert.strictEqual(yield* codeOf(move(20, by)), "role_required")
      for (const by of [w.oz, w.ona]) assert.strictEqual(yield* codeOf(move(20, by)), "not_found")
      assert.strictEqual(yield* codeOf(move(20, elsewhere.ada, elsewhere.fern)), "not_found")
      const [first, second] = (yield* itemsOf(w, campaign)).items
      yield* answer(w, first!, w.ona)

      const later = yield* move(20)
      assert.deepInclude(later, { state: "open", deadline: new Date(start + 20 * day).toISOString() })
      assert.deepInclude(later.items, { total: 2, open: 1, confirmed: 1 })
      assert.deepStrictEqual(yield* move(20), later)
      yield* TestClock.adjust(15 * day)
      assert.deepStrictEqual(yield* mine(w.ona), [second!.access_id])
      yield* move(16, w.abe)
      yield* TestClock.adjust(day)
      assert.strictEqual(yield* codeOf(move(30)), "invalid_state")
      assert.strictEqual(yield* codeOf(answer(w, second!, w.ona)), "invalid_state")
      assert.deepStrictEqual(yield* auditOf(campaign), [
        "campaign.opened",
        "campaign.answered",
        "campaign.rescheduled",
        "campaign.rescheduled",
      ])
      const { sql } = yield* Database
      const closed = yield* open(w, { deadline: new Date(start + 40 * day).toISOString() })
      yield* close(w, closed)
      const moved =
        sql`update campaigns set deadline = deadline + interval '1 day' where id = ${closed.campaign_id}::uuid`
      assert.strictEqual((yield* Effect.flip(moved))._tag, "SqlError")
    })))

  it.effect("what a campaign that ended left without an answer no longer stands among what waits", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const { sql } = yield* Database
      const waiting = (of: Opened) =>
        Effect.map(
          sql`select from campaign_items where campaign_id = ${of.campaign_id}::uuid and outcome = 'open' and not over`,
          ({ length }) => length,
        )
      const [over, closed, going] = [yield* open(w), yield* open(w, {}, w.ada, 30), yield* open(w, {}, w.ada, 30)]
      const [first] = (yield* itemsOf(w, over)).items
      yield* answer(w, first!, w.ona)
      yield* close(w, closed)
      yield* TestClock.adjust(10 * day)
      assert.isAtLeast(yield* endCampaigns, 1)
      // A process whose clock is late may still take answers: it has not ended for all of them.
      assert.deepStrictEqual(yield* Effect.forEach([over, closed, going], waiting), [1, 0, 2])
      yield* TestClock.adjust(60_000)
      assert.isAtLeast(yield* endCampaigns, 1)
      assert.strictEqual(yield* endCampaigns, 0)
      assert.deepStrictEqual(yield* Effect.forEach([over, closed, going], waiting), [0, 0, 2])
      assert.deepStrictEqual((yield* itemsOf(w, over)).items.map(({ state }) => state), ["confirmed", "unanswered"])
      assert.deepStrictEqual((yield* itemsOf(w, closed)).items.map(({ state }) => state), ["unanswered", "unanswered"])
      assert.lengthOf(yield* mine(w.ona), 2)
      const [left] = (yield* itemsOf(w, closed)).items
      // A program of the version before asks without `over`.
      const indexes = yield* sql<{ name: string }>`
        select indexname as name from pg_indexes
        where tablename = 'campaign_items' and indexdef like '%open%' and indexdef not like '%over%' order by 1`
      assert.deepStrictEqual(indexes.map(({ name }) => name), ["campaign_items_delegate", "campaign_items_project"])
      const back = sql`update campaign_items set over = false where id = ${left!.item_id}::uuid`
      assert.strictEqual((yield* Effect.flip(back))._tag, "SqlError")
    })))

  it.effect("a campaign that another process has ended is over also by a clock that is late", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const { sql } = yield* Database
      const campaign = yield* open(w)
      const [first] = (yield* itemsOf(w, campaign)).items
      yield* sql`
        with items as (update campaign_items set over = true where campaign_id = ${campaign.campaign_id}::uuid)
        update campaigns set ended = true where id = ${campaign.campaign_id}::uuid`
      const later = new Date(start + 20 * day).toISOString()
      const reschedule = Effect.flatMap(Campaigns, (campaigns) =>
        run(campaigns.reschedule({
          personId: w.ada,
          institutionId: w.fern,
          campaignId: campaign.campaign_id,
          deadline: later,
          reason,
        })))
      const codes = [
        yield* codeOf(answer(w, first!, w.ona)),
        yield* codeOf(delegate(w, first!, w.ona, w.mo)),
        yield* codeOf(close(w, campaign)),
        yield* codeOf(reschedule),
      ]
      assert.deepStrictEqual(codes, Array(4).fill("invalid_state"))
      const refused = yield* Effect.flip(answer(w, first!, w.ona))
      assert.deepInclude(refused, { _tag: "InvalidState", state: "unanswered" })
    })))

  it.effect("an opening looks at a bounded number of Accesses, and asks for projects where there are more", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const garden = yield* project(w.fern)
      const { sql } = yield* Database
      const granted = new Date(start)
      yield* sql`
        with made as (
          insert into access (id, institution_id, project_id, person_id, role, state, access_version, created_at, updated_at)
          select 'many-' || w.id || '-' || lpad(n::text, 8, '0'), ${w.fern}, ${garden}, ${w.user}, 'user',
            case when n % 20 = 0 then 'active' else 'revoked' end, 1, ${granted}, ${granted}
          from generate_series(1, ${mostLooked}) n cross join (select ${w.fern}::text as id) w
          returning id, project_id, state)
        insert into access_versions (access_id, access_version, institution_id, project_id, person_id, role, state, digest,
          event_id, created_at)
        select id, 1, ${w.fern}, project_id, ${w.user}, 'user', state, 'none', gen_random_uuid(), ${granted} from made`
      assert.strictEqual(yield* codeOf(open(w)), "HTTPValidationError")
      assert.strictEqual(yield* codeOf(open(w, { overdue: true })), "HTTPValidationError")
      assert.strictEqual((yield* open(w, { project_ids: [w.portal] })).items.total, 2)
      assert.strictEqual((yield* open(w, { project_ids: [garden] })).items.total, mostLooked / 20)
      assert.strictEqual(yield* codeOf(open(w, { project_ids: [w.portal, garden] })), "HTTPValidationError")
      assert.strictEqual((yield* open(w, { access_ids: w.accesses })).items.total, 2)
    })))

  it.effect("those who decide in the institution read it, page by page; others learn of nothing", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const elsewhere = yield* fixture
      const [older, newer] = [yield* open(w), yield* open(w)]
      const { items, list, read } = yield* Campaigns
      const page = (by: PersonId, afterId: string | null = null, limit = 1) => list(by, w.fern, { afterId, limit })
      for (const by of [w.sam, w.ada, w.oz, w.aud]) {
        assert.deepStrictEqual((yield* page(by)).items.map(({ campaign_id }) => campaign_id), [newer.campaign_id])
      }
      assert.deepStrictEqual((yield* page(w.sam, newer.campaign_id)).items.map(({ campaign_id }) => campaign_id), [
        older.campaign_id,
      ])
      assert.strictEqual(yield* codeOf(page(w.mo)), "role_required")
      for (const by of [w.ona, w.pat, elsewhere.ada]) assert.strictEqual(yield* codeOf(page(by)), "not_found")
      // By the own institution's path nothing of another's is reached.
      const { ada, fern } = elsewhere
      for (const id of [older.campaign_id, CampaignId.make(randomUUID()), CampaignId.make("x")]) {
        assert.strictEqual(yield* codeOf(read(ada, fern, id)), "not_found")
        assert.strictEqual(yield* codeOf(items(ada, fern, id, { limit: 1, afterId: null })), "not_found")
        assert.strictEqual(yield* codeOf(close({ ...elsewhere }, { ...older, campaign_id: id })), "not_found")
        const foreign = { campaign_id: id, item_id: CampaignItemId.make(randomUUID()) }
        assert.strictEqual(yield* codeOf(answer(elsewhere, foreign, elsewhere.ona)), "not_found")
      }
      const [first] = (yield* itemsOf(w, older)).items
      assert.strictEqual(yield* codeOf(answer(elsewhere, first!, w.ona)), "not_found")
      assert.strictEqual(yield* codeOf(answer(w, { ...first!, campaign_id: newer.campaign_id }, w.ona)), "not_found")
      const [a] = yield* mine(w.ona, null, 1)
      assert.strictEqual(a, first!.access_id)
      assert.lengthOf(yield* mine(w.ona, first!.item_id), 3)
    })))

  it.effect("a proposal that waits already is the one that an answer means, too", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const asked = { personId: w.sam, institutionId: w.fern, accessId: w.accesses[0]!, expected_version: 1, reason }
      const before = yield* Effect.flatMap(Requests, ({ revocation }) => run(revocation(asked)))
      const campaign = yield* open(w)
      const [first] = (yield* itemsOf(w, campaign)).items
      const { revocation } = yield* answer(w, first!, w.ona, "propose_revocation")
      assert.strictEqual(revocation?.request_id, before.request_id)
      yield* TestClock.adjust(14 * day)
      assert.strictEqual((yield* itemOf(w, campaign, w.accesses[0]!)).revocation?.state, "expired")
      assert.strictEqual((yield* requestRow(before.request_id)).state, "submitted")
    })))

  it.effect("of two answers at once one is given; an answer and a close happen one after the other", () =>
    Effect.gen(function* () {
      const w = yield* fixture
      const second = yield* person()
      yield* owner(w.portal, second)
      for (let round = 0; round < 6; round++) {
        const campaign = yield* open(w, { deadline: new Date(Date.now() + day).toISOString() })
        const [first, last] = (yield* itemsOf(w, campaign)).items
        const both = yield* Effect.all([
          codeOf(answer(w, first!, w.ona, round % 2 === 0 ? "confirm" : "propose_revocation")),
          codeOf(answer(w, first!, second)),
        ], { concurrency: 2 })
        assert.deepStrictEqual(both.sort(), ["done", "invalid_state"])

        const [saying, closing] = [codeOf(answer(w, last!, w.ona)), codeOf(close(w, campaign))]
        const [said, closed] = round < 3
          ? yield* Effect.all([saying, closing], { concurrency: 2 })
          : (yield* Effect.all([closing, saying], { concurrency: 2 })).toReversed()
        assert.strictEqual(closed, "done")
        assert.include(["done", "invalid_state"], said)
        const { answer: kept, state } = yield* itemOf(w, campaign, last!.access_id)
        assert.strictEqual(state, said === "done" ? "confirmed" : "unanswered")
        const [detail] = yield* Effect.flatMap(
          Database,
          ({ sql }) =>
            sql<{ closed_at: Date; answered_at: Date | null }>`
          select c.closed_at, i.answered_at from campaigns c join campaign_items i on i.campaign_id = c.id
          where i.id = ${last!.item_id}::uuid`,
        )
        // What was answered was answered before the close.
        if (kept !== null) assert.isAtMost(detail!.answered_at!.getTime(), detail!.closed_at.getTime())
      }
    }))

  it.effect("a close waits for an answer that has begun, and counts it", () =>
    Effect.gen(function* () {
      const w = yield* fixture
      const { sql } = yield* Database
      const campaign = yield* open(w, { deadline: new Date(Date.now() + day).toISOString() })
      const [first] = (yield* itemsOf(w, campaign)).items
      const [locked, released] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const holder = yield* Effect.forkChild(sql.withTransaction(Effect.gen(function* () {
        yield* sql`select from campaign_items where id = ${first!.item_id}::uuid for update`
        yield* Deferred.succeed(locked, undefined)
        yield* Deferred.await(released)
      })))
      yield* Deferred.await(locked)
      const waiting = (n: number) =>
        sql`select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`.pipe(
          Effect.repeat({ until: ({ length }) => length === n, schedule: Schedule.spaced("10 millis") }),
          Effect.timeout("10 seconds"),
        )
      const saying = yield* Effect.forkChild(answer(w, first!, w.ona))
      yield* waiting(1)
      const closing = yield* Effect.forkChild(close(w, campaign))
      yield* waiting(2)
      yield* Deferred.succeed(released, undefined)
      yield* Fiber.join(holder)
      assert.strictEqual((yield* Fiber.join(saying)).state, "confirmed")
      assert.deepInclude((yield* Fiber.join(closing)).items, { confirmed: 1, unanswered: 1 })
    }))
})
