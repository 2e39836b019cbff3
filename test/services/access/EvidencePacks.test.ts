/** Packs of evidence, as the kit verifies them: whole, in parts, of a scope, and forged in every line. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { createHash, randomUUID } from "node:crypto"
import {
  AccessId,
  AccessReviewId,
  type InstitutionId,
  type PersonId,
  type ProjectId,
} from "../../../schemas/BrandedIds.ts"
import { verifyEvidencePack } from "../../../sdk/VerifyEvidence.ts"
import { Refusal } from "../../../sdk/Refusal.ts"
import { AccessEnds } from "../../../services/access/AccessEnds.ts"
import { AccessConfirmations } from "../../../services/access/AccessConfirmations.ts"
import { AccessReviews } from "../../../services/access/AccessReviews.ts"
import { type AskedPack, EvidencePacks, itemsOfPart } from "../../../services/access/EvidencePacks.ts"
import { Requests } from "../../../services/decisions/Requests.ts"
import { Directory } from "../../../services/directory/Directory.ts"
import { SigningKeys } from "../../../services/lifecycle/SigningKeys.ts"
import { DecisionLog } from "../../../services/transparency/DecisionLog.ts"
import { looked } from "../../../services/access/EvidencePacks/PackSections.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { run } from "../../../services/platform/database/UnitOfWork.ts"
import { day, reason, start, timed } from "../../support/Fixtures.ts"
import { rowsRead } from "../../support/RowsRead.ts"
import { access, person, project, tell } from "../../support/TestIdentity.ts"
import {
  askAccess,
  changeMembership,
  codeOf,
  decided,
  fixture,
  requestRow,
  services,
  sign,
} from "../decisions/RequestFixture.ts"
import { origin, policy, settled } from "../transparency/DecisionLogFixture.ts"

const publicUrl = new URL("https://mail.example")

const packs = EvidencePacks.layer(publicUrl).pipe(
  Layer.provideMerge(
    Layer.mergeAll(SigningKeys.layer, DecisionLog.layer(origin), AccessReviews.layer, AccessConfirmations.layer),
  ),
  Layer.provideMerge(services),
)

const asked = (personId: PersonId, institutionId: InstitutionId, more: Partial<AskedPack> = {}): AskedPack => ({
  personId,
  institutionId,
  person_id: null,
  review_id: null,
  since: null,
  until: null,
  after: undefined,
  ...more,
})

const partOf = (asking: AskedPack) => Effect.flatMap(EvidencePacks, ({ part }) => part(asking))

const nextOf = (part: string): string | null => JSON.parse(part.split("\n").at(-2)!).next

/** All parts, one after the other. */
const whole = Effect.fnUntraced(function* (asking: AskedPack) {
  let pack = ""
  let after: string | null = null
  do {
    const part: string = yield* partOf({ ...asking, after: after ?? undefined })
    pack += part
    after = nextOf(part)
  } while (after !== null)
  return pack
})

/** What a verifier has: the served keys, the log's key, and a clock. */
const trusted = Effect.fnUntraced(function* (institutionId: InstitutionId) {
  const { jwks } = yield* SigningKeys
  const served = yield* jwks
  return {
    issuer: "https://mail.example/lifecycle",
    institution: institutionId,
    jwks: served,
    now: () => start / 1_000 + 90 * 86_400,
    log: yield* policy,
  }
})

const verified = Effect.fnUntraced(function* (pack: string, institutionId: InstitutionId) {
  const trust = yield* trusted(institutionId)
  return yield* Effect.promise(() => verifyEvidencePack(pack, trust))
})

/** The step at which a pack is refused; `accepted` where it is not. */
const refusalOf = Effect.fnUntraced(function* (pack: string, institutionId: InstitutionId) {
  const trust = yield* trusted(institutionId)
  return yield* Effect.promise(() =>
    verifyEvidencePack(pack, trust).then(() => "accepted", (error: unknown) => {
      if (error instanceof Refusal) return error.step
      throw error
    })
  )
})

/** Fern with an Access that pat asked for and two signed, with an approved review; and a membership that was asked for. */
const decisions = Effect.gen(function* () {
  const w = yield* fixture
  const portal = yield* project(w.fern)
  const request = yield* askAccess(w.fern, portal, w.pat)
  yield* sign(request, "administrator", w.ada)
  yield* sign(request, "sponsor", w.sam)
  const accessId = (yield* requestRow(request.request_id)).result_id!
  const reviews = yield* AccessReviews
  const asking = {
    access_id: AccessId.make(accessId),
    access_version: 1,
    reason,
    personId: w.sam,
    institutionId: w.fern,
  }
  const { review_id } = yield* run(reviews.propose(asking))
  yield* run(reviews.approve({
    personId: w.ada,
    institutionId: w.fern,
    reviewId: review_id,
    reason,
    seen: undefined,
    stepUp: Effect.void,
  }))
  return { ...w, portal, request, accessId, reviewId: AccessReviewId.make(review_id) }
})

/** So many Access of one person, by one call of the directory. */
const many = Effect.fnUntraced(function* (
  count: number,
  institution_id: InstitutionId,
  project_id: ProjectId,
  person_id: PersonId,
) {
  const line = () => ({
    id: randomUUID(),
    version: 1,
    institution_id,
    project_id,
    person_id,
    role: "member",
    state: "active",
  })
  const lines = Array.from({ length: count }, () => JSON.stringify({ kind: "access", ...line() }))
  const results = yield* (yield* Directory).apply(lines)
  return results.filter(({ _tag }) => _tag === "applied").length
})

const linesNamed = (items: ReadonlyArray<{ readonly [name: string]: unknown }>, name: string) =>
  items.filter(({ line }) => line === name)

/** Accesses and requests of a day after the others, as many of each. */
const grantedLate = Effect.fnUntraced(function* (w: Effect.Success<typeof decisions>, some: number) {
  const { sql } = yield* Database
  const late = new Date(start + day)
  yield* sql`
    insert into access_versions (access_id, access_version, institution_id, project_id, person_id, role, state, digest,
      event_id, created_at)
    select ${`${w.fern}-late-`} || lpad(n::text, 8, '0'), 1, ${w.fern}, ${w.portal}, ${w.pat}, 'user', 'active', 'none',
      gen_random_uuid(), ${late}
    from generate_series(1, ${some}) n`
  yield* sql`
    insert into requests (id, kind, state, author, institution_id, fields, reason, created_at)
    select gen_random_uuid(), 'membership', 'declined', ${w.pat}, ${w.fern}, '{}', ${reason}, ${late}
    from generate_series(1, ${some})`
})

layer(packs, { excludeTestServices: true, timeout: "2 minutes" })("EvidencePacks", (it) => {
  it.effect("tells who asked, who signed and what was reviewed, and the kit proves each decision", () =>
    timed(Effect.gen(function* () {
      const w = yield* decisions
      yield* settled
      const pack = yield* verified(yield* whole(asked(w.ada, w.fern)), w.fern)
      assert.deepStrictEqual([pack.institutionId, pack.parts], [w.fern, 1])
      const [held] = linesNamed(pack.items, "access")
      assert.strictEqual(held!["access_id"], w.accessId)
      assert.deepInclude((held!["versions"] as ReadonlyArray<object>)[0], {
        person_id: w.pat,
        state: "active",
        made_by: w.pat,
        approved_by: [w.ada, w.sam],
      })
      const [request] = linesNamed(pack.items, "request")
      assert.deepInclude(request, { request_id: w.request.request_id, person_id: w.pat, access_id: w.accessId })
      const [policyReview] = request!["reviews"] as ReadonlyArray<{ approvals: ReadonlyArray<{ person_id: string }> }>
      assert.deepStrictEqual(policyReview!.approvals.map(({ person_id }) => person_id).sort(), [w.ada, w.sam].sort())
      const [review] = linesNamed(pack.items, "review")
      assert.deepInclude(review, { review_id: w.reviewId, state: "approved", whole: true })
      const actions = pack.decisions.map(({ record }) => record["action"])
      assert.includeMembers(actions, ["access-request.submitted", "access-review.propose", "access-review.approve"])
      for (const { provedAt, record } of pack.decisions) assert.isNumber(provedAt, String(record["action"]))
    })))

  it.effect("a decision that waits for its checkpoint is in the pack without a proof", () =>
    timed(Effect.gen(function* () {
      const w = yield* decisions
      const { decisions: found } = yield* verified(yield* whole(asked(w.sam, w.fern)), w.fern)
      assert.isAbove(found.length, 3)
      assert.isTrue(found.every(({ provedAt }) => provedAt === null))
      yield* settled
    })))

  it.effect("tells that an Access was confirmed, and that its revocation was proposed and signed", () =>
    timed(Effect.gen(function* () {
      const w = yield* decisions
      const on = { institutionId: w.fern, accessId: AccessId.make(w.accessId), expected_version: 1, reason }
      const { confirm } = yield* AccessConfirmations
      yield* run(confirm({ ...on, personId: w.sam }))
      const { revocation } = yield* Requests
      const proposed = yield* run(revocation({ ...on, personId: w.sam }))
      yield* sign(proposed, "administrator", w.ada)
      yield* settled
      for (const more of [{}, { person_id: w.pat }, { review_id: w.reviewId }]) {
        const pack = yield* verified(yield* whole(asked(w.ada, w.fern, more)), w.fern)
        const [held] = linesNamed(pack.items, "access")
        const [confirmed] = held!["confirmations"] as ReadonlyArray<object>
        assert.deepInclude(confirmed, { access_version: 1, confirmed_by: w.sam, reason, campaign_id: null })
        const kinds = linesNamed(pack.items, "request").map(({ access_id, kind }) => [kind, access_id])
        assert.deepStrictEqual(kinds, [["access", w.accessId], ["access_revocation", w.accessId]])
        assert.include(pack.decisions.map(({ record }) => record["action"]), "access.confirmed")
      }
    })))

  it.effect("of a person, a review or a span it has what belongs to it, and nothing else", () =>
    timed(Effect.gen(function* () {
      const w = yield* decisions
      const bo = yield* person()
      const other = yield* access(w.fern, w.portal, bo)
      yield* decided(changeMembership(w, w.ada, bo, "member", "active"))
      yield* TestClock.adjust(10 * day)
      yield* tell("access", {
        id: other,
        version: 2,
        institution_id: w.fern,
        project_id: w.portal,
        person_id: bo,
        role: "member",
        state: "revoked",
      })
      yield* TestClock.adjust(2 * day)
      yield* settled
      const of = (more: Partial<AskedPack>) =>
        Effect.flatMap(whole(asked(w.ada, w.fern, more)), (pack) => verified(pack, w.fern))
      const ids = ({ items }: Effect.Success<ReturnType<typeof of>>) =>
        items.map((item) => String(item["access_id"] ?? item["request_id"] ?? item["review_id"]))
      assert.include(ids(yield* of({ person_id: bo })), other)
      assert.notInclude(ids(yield* of({ person_id: bo })), w.accessId)
      assert.strictEqual(linesNamed((yield* of({ person_id: bo })).items, "request").length, 1)
      const ofReview = yield* of({ review_id: w.reviewId })
      assert.deepStrictEqual(linesNamed(ofReview.items, "access").map((line) => line["access_id"]), [w.accessId])
      assert.deepStrictEqual(linesNamed(ofReview.items, "review").length, 1)
      assert.deepStrictEqual(linesNamed(ofReview.items, "request").length, 1)
      const iso = (millis: number) => new Date(millis).toISOString()
      // The first version of the other Access was in force until ten days later, when the second one revoked it.
      const versionsOf = (pack: Effect.Success<ReturnType<typeof of>>) =>
        linesNamed(pack.items, "access").find(({ access_id }) => access_id === other)?.["versions"] as
          | ReadonlyArray<{ access_version: number }>
          | undefined
      const early = yield* of({ until: iso(start + day) })
      assert.deepStrictEqual(versionsOf(early)?.map(({ access_version }) => access_version), [1])
      const late = yield* of({ since: iso(start + 11 * day) })
      assert.deepStrictEqual(versionsOf(late)?.map(({ access_version }) => access_version), [2])
      assert.deepStrictEqual(linesNamed(late.items, "review").length, 1, "a review that still counts")
      assert.deepStrictEqual((yield* of({ until: iso(start - day) })).items, [])
    })))

  it.effect("of an Access that moved, each institution is told what was decided there, and of no other", () =>
    timed(Effect.gen(function* () {
      const w = yield* decisions
      const moss = yield* fixture
      const id = yield* access(w.fern, w.portal, w.pat)
      const shorten = (
        of: { readonly fern: InstitutionId; readonly ada: PersonId },
        expected_version: number,
        days: number,
      ) =>
        Effect.flatMap(AccessEnds, (ends) =>
          run(ends.shorten({
            personId: of.ada,
            institutionId: of.fern,
            accessId: id,
            expected_version,
            ends_at: new Date(start + days * day).toISOString(),
            reason,
          })))
      yield* shorten(w, 1, 20)
      const site = yield* project(moss.fern)
      yield* TestClock.adjust(day)
      const line = { id, institution_id: moss.fern, project_id: site, person_id: w.pat, role: "user", state: "active" }
      yield* tell("access", { ...line, version: 2 })
      // The move ended it at one product and gave it at another: two versions.
      yield* shorten(moss, 3, 9)
      yield* settled
      const before = yield* whole(asked(w.ada, w.fern))
      const after = yield* whole(asked(moss.ada, moss.fern))
      for (const [pack, others] of [[before, [moss.ada, moss.fern]], [after, [w.ada, w.sam, w.fern]]] as const) {
        for (const other of others) assert.notInclude(pack, other)
      }
      for (const [pack, institutionId] of [[before, w.fern], [after, moss.fern]] as const) {
        const { decisions: proved, items } = yield* verified(pack, institutionId)
        const held = linesNamed(items, "access").find(({ access_id }) => access_id === id)
        assert.lengthOf(held!["ends"] as ReadonlyArray<object>, 1)
        assert.lengthOf(proved.filter(({ record }) => record["action"] === "access.shortened"), 1)
      }
    })))

  it.effect("a large institution comes in parts, each signed, and a part that is missing is noticed", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const portal = yield* project(w.fern)
      const held = yield* many(itemsOfPart + 5, w.fern, portal, w.pat)
      const first = yield* partOf(asked(w.ada, w.fern))
      // Decided after the pack was begun: not in its later parts.
      yield* TestClock.adjust(1_000)
      yield* many(3, w.fern, portal, w.pat)
      const second = yield* partOf(asked(w.ada, w.fern, { after: nextOf(first)! }))
      assert.isNull(nextOf(second))
      const pack = yield* verified(first + second, w.fern)
      assert.deepStrictEqual([pack.parts, pack.items.length], [2, held])
      assert.strictEqual(new Set(pack.items.map((item) => item["access_id"])).size, held)
      const otherScope = yield* partOf(asked(w.ada, w.fern, { after: nextOf(first)!, since: "2020-01-01T00:00:00Z" }))
      // A later pack with the same end, begun anew: its parts are not those of the first.
      const until = new Date(start + day).toISOString()
      const [one, other] = [
        yield* partOf(asked(w.ada, w.fern, { until })),
        yield* partOf(asked(w.ada, w.fern, { until })),
      ]
      const rest = yield* partOf(asked(w.ada, w.fern, { until, after: nextOf(other)! }))
      assert.strictEqual(yield* refusalOf(other + rest, w.fern), "accepted")
      assert.strictEqual(yield* refusalOf(one + rest, w.fern), "pack")
      for (const broken of [first, second, second + first, first + first, first + otherScope, ""]) {
        assert.strictEqual(yield* refusalOf(broken, w.fern), "pack")
      }
    })))

  it.effect("a part reads a bounded number of rows, however many objects none of which is in its span", () =>
    timed(Effect.gen(function* () {
      const w = yield* decisions
      const { owner, wide } = yield* Database
      const some = looked * 10
      yield* grantedLate(w, some)
      // Without a vacuum, which would hide the rows of index-only scans from the counters.
      yield* owner`analyze access_versions, requests`
      const until = new Date(start + 1_000).toISOString()
      for (const more of [{}, { person_id: w.pat }]) {
        const scope = asked(w.ada, w.fern, { until, ...more })
        let after: string | undefined
        let read = 0
        // Parts of Accesses, and then of requests.
        for (let n = 0; n < 13; n++) {
          const [rows, part] = yield* rowsRead(wide, partOf({ ...scope, after }))
          for (const [table, count] of rows) assert.isAtMost(count, 6 * looked, `${table} in part ${n}`)
          read += rows.get("access_versions") ?? 0
          after = nextOf(part)!
        }
        assert.isAbove(read, some)
      }
    })))

  it.effect("a pack goes on behind all that a part has looked at, where none of it is in its span", () =>
    timed(Effect.gen(function* () {
      const w = yield* decisions
      // Granted, asked for and proposed after the span: each part has to look past all of them.
      const some = looked * 2
      yield* grantedLate(w, some)
      const until = new Date(start + 1_000).toISOString()
      for (const more of [{}, { person_id: w.pat }]) {
        const scope = asked(w.ada, w.fern, { until, ...more })
        const first = yield* partOf(scope)
        assert.isNotNull(nextOf(first))
        const pack = yield* verified(yield* whole(scope), w.fern)
        // Two full looks at Accesses, two at requests, and what is left.
        assert.strictEqual(pack.parts, 5)
        assert.strictEqual(new Set(pack.items.map((item) => JSON.stringify(item))).size, pack.items.length)
        const kinds = pack.items.map(({ line }) => line)
        assert.deepStrictEqual(kinds, ["access", "request", "review"])
      }
      const ofReview = yield* verified(yield* whole(asked(w.ada, w.fern, { until, review_id: w.reviewId })), w.fern)
      assert.deepStrictEqual([ofReview.parts, ofReview.items.length], [1, 3])
    })))

  it.effect("sections of requests and reviews go on from part to part, each item once and in its order", () =>
    timed(Effect.gen(function* () {
      const w = yield* decisions
      const bo = yield* person()
      const { sql } = yield* Database
      const some = itemsOfPart + 30
      yield* many(some, w.fern, w.portal, bo)
      yield* sql`
        insert into requests (id, kind, state, author, institution_id, fields, reason, created_at)
        select gen_random_uuid(), 'membership', 'declined', ${bo}, ${w.fern}, '{}', ${reason}, ${new Date(start)}
        from generate_series(1, ${some})`
      const reviews = yield* AccessReviews
      const held = yield* sql<{ id: AccessId }>`
        select id from access where institution_id = ${w.fern} and person_id = ${bo} order by id`
      // Many of one moment, so that their ids decide the order.
      for (const { id } of held) {
        const asking = { access_id: id, access_version: 1, reason, personId: w.sam, institutionId: w.fern }
        yield* run(reviews.propose(asking))
      }
      const parts: Array<string> = []
      do {
        const after = parts.length === 0 ? undefined : nextOf(parts.at(-1)!)!
        parts.push(yield* partOf(asked(w.ada, w.fern, { after })))
      } while (nextOf(parts.at(-1)!) !== null)
      const { items } = yield* verified(parts.join(""), w.fern)
      for (const name of ["access", "request", "review"]) {
        const ids = linesNamed(items, name).map((line) => String(line[name === "access" ? "access_id" : `${name}_id`]))
        assert.strictEqual(ids.length, some + 1, name)
        assert.strictEqual(new Set(ids).size, some + 1, name)
        if (name !== "review") assert.deepStrictEqual(ids, [...ids].sort(), name)
      }
      assert.strictEqual(parts.length, Math.ceil(items.length / itemsOfPart))
      // Of each section but the last the rest stands before the next section, in one part.
      const named = items.map(({ line }) => line)
      assert.deepStrictEqual(named, [...named].sort())
    })))

  it.effect("a pack that was changed anywhere is refused", () =>
    timed(Effect.gen(function* () {
      const w = yield* decisions
      yield* settled
      const pack = yield* whole(asked(w.ada, w.fern))
      const lines = pack.trimEnd().split("\n")
      const joined = (texts: ReadonlyArray<string>) => texts.map((text) => `${text}\n`).join("")
      for (const [n, line] of lines.entries()) {
        const kept = lines.filter((_, i) => i !== n)
        assert.notStrictEqual(yield* refusalOf(joined(kept), w.fern), "accepted", `without line ${n}`)
        assert.notStrictEqual(yield* refusalOf(joined([...lines, line]), w.fern), "accepted", `line ${n} twice`)
        const digit = line.search(/\d/)
        const changed = line.slice(0, digit) + String(9 - Number(line[digit])) + line.slice(digit + 1)
        const forged = lines.map((text, i) => i === n ? changed : text)
        assert.notStrictEqual(yield* refusalOf(joined(forged), w.fern), "accepted", `line ${n} changed`)
      }
      assert.strictEqual(yield* refusalOf(pack.slice(0, -1), w.fern), "pack")
      assert.strictEqual(yield* refusalOf(pack, (yield* fixture).fern), "aud")
    })))

  it.effect("a record that its signer changed does not fit the log", () =>
    timed(Effect.gen(function* () {
      const w = yield* decisions
      yield* settled
      const pack = yield* whole(asked(w.ada, w.fern))
      const lines = pack.trimEnd().split("\n").map((line) => JSON.parse(line))
      const forged = lines.slice(0, -1).map((line) =>
        line.record === undefined ? line : { ...line, record: { ...line.record, actor: `person:${randomUUID()}` } }
      )
      const text = forged.map((line) => `${JSON.stringify(line)}\n`).join("")
      const { active } = yield* SigningKeys
      const [, claims] = lines.at(-1).jws.split(".")
      const digest = `sha256:${createHash("sha256").update(text).digest("hex")}`
      const payload = { ...JSON.parse(Buffer.from(claims, "base64url").toString()), digest }
      const signer = yield* active
      const jws = yield* Effect.promise(() => signer.sign("evidence-pack+jwt", JSON.stringify(payload)))
      const resigned = `${text}${JSON.stringify({ line: "signature", next: null, jws })}\n`
      assert.strictEqual(yield* refusalOf(resigned, w.fern), "digest")
    })))

  it.effect("a person without the role, an operator, and a review of another institution get nothing", () =>
    timed(Effect.gen(function* () {
      const w = yield* decisions
      const other = yield* decisions
      const stranger = yield* person()
      const auditor = yield* person({ auditor: true })
      assert.strictEqual(yield* codeOf(partOf(asked(stranger, w.fern))), "not_found")
      assert.strictEqual(yield* codeOf(partOf(asked(w.oz, w.fern))), "not_found")
      assert.strictEqual(yield* codeOf(partOf(asked(w.ada, w.fern, { review_id: other.reviewId }))), "not_found")
      assert.strictEqual(yield* codeOf(partOf(asked(auditor, w.fern))), "done")
    })))
})
