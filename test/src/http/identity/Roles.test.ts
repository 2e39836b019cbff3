/** Rights (docs/api/identity.md): each operation by every role, in one row of the table each. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { randomUUID } from "node:crypto"
import { Database } from "../../../../services/platform/database/Database.ts"
import { codeOf, reason } from "../../../support/Fixtures.ts"
import { member, owner, person } from "../../../support/TestIdentity.ts"
import { management } from "../../../support/TestManagement.ts"
import { serviceTokenFor } from "../../../support/TestTokens.ts"
import { as, ask, done, type Headers, key, secret, send } from "./IdentityClient.ts"
import { type Asked, type Case, catalogue, operationOf, operations, pathOf, spec } from "./Catalogue.ts"
import { held } from "./ConformsToSpec.ts"
import { everybody, type IdentityStage, stage, type Who } from "./IdentityStage.ts"

type Outcome =
  | "ok"
  | "administrator_not_effective"
  | "auditor_reads_only"
  | "four_eyes_required"
  | "membership_not_active"
  | "not_found"
  | "role_required"
type Row = Readonly<Record<Who | "service", Outcome>>

const row = (others: Outcome, some: Partial<Record<Outcome, string>>, service: Outcome = others): Row => {
  const cells = Object.fromEntries(everybody.map((who) => [who, others])) as Record<Who, Outcome>
  for (const [outcome, people] of Object.entries(some)) {
    for (const who of people.split(" ")) cells[who as Who] = outcome as Outcome
  }
  return { ...cells, service }
}

const own = row("ok", {}, "role_required")
const operating = row("role_required", { ok: "operator" })
const audited = row("role_required", { ok: "operator auditor" })
const bothRoles = row("not_found", {
  ok: "sponsor sponsor2 administrator administrator2",
  administrator_not_effective: "early suspended",
  role_required: "member",
})
/** The same, readable for auditors. */
const reviewed: Row = { ...bothRoles, auditor: "ok" }
/** Readable for those who decide in the institution, and for operators. */
const reading = row("not_found", {
  ok: "sponsor sponsor2 administrator administrator2 operator",
  administrator_not_effective: "early suspended",
  role_required: "member",
})
/** The same for auditors. */
const explained: Row = { ...reading, auditor: "ok" }
/** The same of a project, also for its owners. */
const decided = row("not_found", {
  ok: "sponsor sponsor2 administrator administrator2 operator owner owner2",
  administrator_not_effective: "early suspended",
  role_required: "member",
})
/** Readable for an owner of a project, and for an operator who belongs to its institution. */
const diagnosing = row("not_found", {
  ok: "owner owner2",
  role_required: "sponsor sponsor2 administrator administrator2 member early suspended operator",
})
const administering = row("not_found", {
  ok: "administrator administrator2",
  administrator_not_effective: "early suspended",
  role_required: "sponsor sponsor2 member",
})
/** Of an Access to the project of `owner`. */
const answered = row("not_found", {
  ok: "sponsor sponsor2 administrator administrator2 owner owner2",
  administrator_not_effective: "early suspended",
  role_required: "member operator",
})
/** Of a website's registration, which `sponsor` wrote. */
const policy = row("not_found", {
  ok: "administrator administrator2",
  administrator_not_effective: "early suspended",
  four_eyes_required: "sponsor",
  role_required: "sponsor2 member operator",
})

const table: Readonly<Record<string, Row>> = {
  "me.me": own,
  "me.freshness": own,
  "me.listSessions": own,
  "me.listAuthenticators": own,
  "me.credentialCapabilities": own,
  "me.startCredentialAction": own,
  "me.completeCredentialAction": own,
  "me.noticeSettings": own,
  "me.setNoticeSettings": own,
  "requests.createOrganizationRequest": own,
  "requests.createAccessRequest": own,
  "requests.createTemporaryAccessRequest": own,
  "requests.listOwnRequests": own,
  // Of a request of `stranger`.
  "requests.withdrawRequest": row("not_found", { ok: "stranger" }),
  "requests.createLinkProof": own,
  "requests.createLinkRequest": own,
  // Of a link with the identity of `stranger`.
  "requests.objectToLinkRequest": row("not_found", { ok: "stranger" }),
  "enrollments.acceptEnrollment": row("ok", {}, "not_found"),
  "policies.listPolicyReviews": own,
  "operations.operations": own,
  "access-grant-reviews.listAccessGrantReviews": reviewed,
  "access-grant-reviews.getAccessGrantReview": reviewed,
  "access-grant-reviews.getAccessGrantEvidence": reviewed,
  "access-grant-reviews.getEvidencePack": reviewed,
  "access-grant-reviews.proposeAccessGrantReview": row("not_found", {
    ok: "sponsor sponsor2",
    membership_not_active: "early suspended",
    role_required: "administrator administrator2 member",
  }),
  "access-grant-reviews.approveAccessGrantReview": row("not_found", {
    ok: "administrator administrator2",
    administrator_not_effective: "early suspended",
    role_required: "sponsor sponsor2 member",
  }),
  "access-grant-reviews.revokeAccessGrantReview": row("not_found", {
    ok: "administrator administrator2 sponsor",
    administrator_not_effective: "early suspended",
    role_required: "sponsor2 member",
  }),
  "enrollments.createEnrollment": bothRoles,
  "enrollments.revokeEnrollment": bothRoles,
  "enrollments.renewEnrollment": bothRoles,
  "enrollments.changeMembership": bothRoles,
  "enrollments.requestAuthenticatorReset": bothRoles,
  "websites.registerWebsite": bothRoles,
  "websites.listProjects": reading,
  // Of their institution, where a membership counts; an operator is none of its members.
  "websites.listRequestableProjects": row("not_found", {
    ok: "sponsor sponsor2 administrator administrator2 member",
    administrator_not_effective: "early suspended",
  }),
  "institutions.listInstitutions": own,
  "institutions.listPersonNames": own,
  "institutions.getInstitution": row("not_found", {
    ok: "sponsor sponsor2 administrator administrator2 member early suspended operator auditor",
  }),
  "institutions.listMembers": explained,
  "institutions.listEnrollments": reading,
  "institutions.listAccess": explained,
  "institutions.explainAccess": explained,
  "institutions.shortenAccess": administering,
  "periodic-reviews.listOverdueReviews": explained,
  "periodic-reviews.confirmAccess": answered,
  "periodic-reviews.proposeAccessRevocation": answered,
  "campaigns.listCampaigns": explained,
  "campaigns.getCampaign": explained,
  "campaigns.listCampaignItems": explained,
  "campaigns.listOwnCampaignItems": own,
  "campaigns.openCampaign": administering,
  "campaigns.rescheduleCampaign": administering,
  "campaigns.closeCampaign": administering,
  // Of an Access to the project of `owner`; it has no delegate.
  "campaigns.delegateCampaignItem": row("not_found", {
    ok: "administrator administrator2 owner owner2",
    administrator_not_effective: "early suspended",
    role_required: "sponsor sponsor2 member operator",
  }),
  "campaigns.answerCampaignItem": row("not_found", {
    ok: "owner owner2",
    role_required: "sponsor sponsor2 administrator administrator2 member early suspended operator",
  }),
  "websites.getProject": decided,
  "websites.listLaunchProposals": decided,
  "websites.listProjectOwners": decided,
  "websites.withdrawWebsite": row("not_found", {
    ok: "administrator administrator2 owner",
    administrator_not_effective: "early suspended",
    role_required: "sponsor sponsor2 member operator",
  }),
  "policies.getPolicyReview": row("not_found", { ok: "administrator administrator2" }, "role_required"),
  "policies.approvePolicyReview": policy,
  "policies.declinePolicyReview": policy,
  "requests.createPerson": operating,
  "lifecycle-service-grants.proposeLifecycleServiceGrant": row("not_found", {
    ok: "owner owner2",
    membership_not_active: "early suspended",
    role_required: "sponsor sponsor2 administrator administrator2 member operator",
  }),
  "lifecycle-service-grants.listLifecycleServiceGrants": row("not_found", {
    ok: "owner owner2 administrator administrator2 operator",
    administrator_not_effective: "early suspended",
    role_required: "sponsor sponsor2 member",
  }),
  "lifecycle-service-grants.approveLifecycleServiceGrant": row("not_found", {
    ok: "administrator administrator2",
    administrator_not_effective: "early suspended",
    role_required: "sponsor sponsor2 member operator owner owner2",
  }),
  "lifecycle-service-grants.revokeLifecycleServiceGrant": row("not_found", {
    ok: "owner owner2 administrator administrator2",
    administrator_not_effective: "early suspended",
    role_required: "sponsor sponsor2 member operator",
  }),
  "websites.proposeLaunch": row("not_found", {
    ok: "owner owner2",
    membership_not_active: "early suspended",
    role_required: "sponsor sponsor2 administrator administrator2 member operator",
  }),
  "websites.changeProjectOwner": row("not_found", {
    ok: "administrator administrator2",
    administrator_not_effective: "early suspended",
    role_required: "sponsor sponsor2 member operator owner owner2",
  }),
  "operations.projectDiagnostics": diagnosing,
  "websites.listProjectEvents": diagnosing,
  "operations.operationsDiagnostics": operating,
  "operations.listJobs": operating,
  "operator.doctor": operating,
  "operator.listAudit": audited,
  "operator.proveDecision": audited,
  "operator.queues": operating,
  "operator.busStreams": operating,
  "operator.listBacklogs": operating,
  "operator.pauseWebhook": operating,
  "operator.resumeWebhook": operating,
  "operator.kickWebhook": operating,
  "operator.listAccountNames": operating,
  "operator.listProjectNames": audited,
  "operator.listDeadLetters": operating,
  "operator.countDeadLetters": operating,
  "operator.replayDeadLetters": operating,
  "operator.replayDeadLetter": operating,
  "upkeep.installation": operating,
  "upkeep.openInstallation": operating,
  "rollouts.listRollouts": operating,
  "rollouts.decideRollout": operating,
  "upkeep.listOutgoingMails": operating,
  "upkeep.retryOutgoingMail": operating,
  "upkeep.forgetOutgoingMail": operating,
  "upkeep.listPersonHolds": operating,
  "upkeep.releasePerson": operating,
  "upkeep.listIntakeRejects": operating,
  "upkeep.retryIntakeReject": operating,
  "upkeep.discardIntakeReject": operating,
  "signing-keys.listSigningKeys": operating,
  "signing-keys.announceSigningKey": operating,
  "signing-keys.publishSigningKey": operating,
  "signing-keys.activateSigningKey": operating,
  "signing-keys.retireSigningKey": operating,
  "signing-keys.compromiseSigningKey": operating,
  "operator.listOwnAudit": own,
  "operator.proveOwnDecision": own,
  "operator.listDecisionsAboutYou": own,
  "operations.reconcileJob": operating,
  "operations.retryJob": operating,
  "operations.repairJob": operating,
}

const sent = (one: Case, asked: Asked, headers: Headers) => {
  const operation = operationOf(one)
  const keyed = operation.method === "POST" ? key() : {}
  return send(operation.method, pathOf(operation, asked), { ...headers, ...keyed, ...asked.headers }, asked.body)
}

const statusOf = (outcome: Outcome, one: Case): readonly [number, string | null] =>
  outcome === "ok" ? [one.status, null] : [outcome === "not_found" ? 404 : 403, outcome]

const changes = (one: Case) => operationOf(one).method !== "GET"

/** What a caller is answered: an auditor's write is refused before the table is asked. */
const outcomeOf = (who: string, outcome: Outcome, one: Case): Outcome =>
  who === "auditor" && changes(one) ? "auditor_reads_only" : outcome

/** A caller's own object is made for each caller; any other exists beforehand, a new one for each allowed caller. */
const isOwn = (one: Case) => table[one.operation]!.elsewhere === "ok"

const cells = Effect.fnUntraced(function* (fixture: IdentityStage, one: Case) {
  const shared = yield* one.asked(fixture, fixture.people[one.by])
  const found: Record<string, unknown> = {}
  const service = { authorization: `Bearer ${secret(yield* serviceTokenFor("unknown-service"))}` }
  found["service"] = codeOf(yield* sent(one, shared, service))
  for (const who of everybody) {
    const personId = fixture.people[who]
    const fresh = outcomeOf(who, "ok", one) === "ok" && (isOwn(one) || table[one.operation]![who] === "ok")
    const asked = fresh ? yield* one.asked(fixture, personId) : shared
    found[who] = codeOf(yield* sent(one, asked, yield* as(personId)))
  }
  return found
})

let kept: { readonly fixture: IdentityStage; readonly requests: ReadonlyMap<Case, Asked> } | undefined

/** A fixture with the request of each case, which tests of refusals share: what is refused changes nothing. */
const refusing = Effect.gen(function* () {
  if (kept !== undefined) return kept
  const fixture = yield* stage
  const requests = new Map<Case, Asked>()
  for (const one of catalogue) requests.set(one, yield* one.asked(fixture, fixture.people[one.by]))
  kept = { fixture, requests }
  return kept
})

/** The tables of decisions and of what they change, receipts included. */
const stored = [
  "people",
  "identities",
  "institutions",
  "institution_memberships",
  "projects",
  "project_owners",
  "access",
  "access_versions",
  "access_reviews",
  "access_review_evidence",
  "service_grants",
  "requests",
  "policy_reviews",
  "policy_approvals",
  "authenticators",
  "recovery_codes",
  "credential_intents",
  "link_proofs",
  "notice_settings",
  "lifecycle_events",
  "signing_keys",
  "idempotency_receipts",
  "intake_rejects",
  "person_holds",
  "webhooks",
  "domains",
  "transfers",
  "api_keys",
]

/** A value of all rows of `stored`. */
const state = Effect.gen(function* () {
  const { sql } = yield* Database
  const parts = stored.map((name) =>
    `select '${name}' as name, count(*) as n, coalesce(sum(hashtextextended(t::text, 0)), 0)::text as sum from ${name} t`
  )
  return yield* sql.unsafe(parts.join(" union all "))
})

/** The greatest age of a sign-in, in seconds, where the operation limits it. */
const freshFor: Readonly<Record<string, number>> = {
  "me.startCredentialAction": 300,
  "me.completeCredentialAction": 300,
  "signing-keys.compromiseSigningKey": 300,
  "rollouts.decideRollout": 300,
  "upkeep.releasePerson": 300,
  "access-grant-reviews.approveAccessGrantReview": 900,
  "lifecycle-service-grants.approveLifecycleServiceGrant": 900,
  "policies.approvePolicyReview": 900,
  "policies.declinePolicyReview": 900,
}

const program = management({ MANAGEMENT_APPROVAL_MAX_AGE: "15 minutes" })

layer(program, { excludeTestServices: true, timeout: "2 minutes" })("Roles over HTTP", (it) => {
  it.effect("every operation has a row and a request", () =>
    Effect.sync(() => {
      const served = operations.map(({ operationId }) => operationId).sort()
      assert.deepStrictEqual(Object.keys(table).sort(), served)
      assert.deepStrictEqual(catalogue.map(({ operation }) => operation).sort(), served)
    }))

  it.effect("each operation answers every role as the table says", () =>
    Effect.gen(function* () {
      const fixture = yield* stage
      for (const one of catalogue) {
        const expected = Object.entries(table[one.operation]!).map(([who, outcome]) => [
          who,
          statusOf(outcomeOf(who, outcome, one), one),
        ])
        assert.deepStrictEqual(yield* cells(fixture, one), Object.fromEntries(expected), one.operation)
      }
    }), 300_000)

  it.effect("an auditor changes nothing, whatever else the directory says they are", () =>
    Effect.gen(function* () {
      const { fixture, requests } = yield* refusing
      const auditor = yield* person({ auditor: true, operator: true })
      for (const role of ["sponsor", "administrator"] as const) yield* member(fixture.institution, auditor, role)
      yield* owner(fixture.project, auditor)
      // Too old for an approval, of which an auditor is not told.
      const headers = yield* as(auditor, { authTime: Math.floor(Date.now() / 1_000) - 3_600 })
      for (const one of catalogue.filter(changes)) {
        const asked = requests.get(one)!
        const before = yield* state
        const answer = held(operationOf(one), yield* sent(one, asked, headers))
        assert.deepStrictEqual(codeOf(answer), [403, "auditor_reads_only"], one.operation)
        assert.deepStrictEqual(yield* state, before, one.operation)
      }
      const before = yield* state
      for (const [template, methods] of Object.entries<Record<string, unknown>>(spec.paths)) {
        const path = template.replaceAll(/\{[a-z_]+\}/g, () => randomUUID())
        for (const method of Object.keys(methods)) {
          if (method === "get") continue
          const answer = yield* send(method.toUpperCase(), path, { ...headers, ...key() }, {})
          assert.include([401, 403, 404, 422], answer.status, `${method} ${template} ${answer.text}`)
        }
      }
      assert.deepStrictEqual(yield* state, before, "by any operation")
      const { sql } = yield* Database
      const acts = yield* sql`select from audit_records where actor = ${`person:${auditor}`} and outcome = 'done'`
      assert.lengthOf(acts, 0)
      const { body } = yield* send("GET", "/v1/me", headers)
      assert.deepInclude(body, { auditor: true, operator: false })
      assert.isTrue(body.memberships.every(({ effective }: { effective: boolean }) => !effective))
    }), 300_000)

  it.effect("who becomes an auditor is none from the next request on, and counts as nobody who could sign", () =>
    Effect.gen(function* () {
      const fixture = yield* stage
      const { administrator, administrator2, operator, sponsor } = fixture.people
      const signed = (personId: string, id: string) =>
        Effect.map(
          Effect.flatMap(as(personId), (headers) =>
            send("POST", `/v1/policies/reviews/${id}/approve?dry_run=true`, { ...headers, ...key() }, {
              role: "administrator",
              reason,
            })),
          codeOf,
        )
      const asked = { recipient: `${randomUUID()}@example.com`, reason }
      const path = `/v1/institutions/${fixture.institution}/enrollments`
      const { policy_review: { review_id } } = done(yield* ask(sponsor, "POST", path, asked))
      assert.deepStrictEqual(yield* signed(administrator, review_id), [204, null])
      assert.deepStrictEqual(yield* signed(operator, review_id), [403, "role_required"])
      const shown = (personId: string) =>
        Effect.map(
          ask(personId, "GET", "/v1/policies/reviews"),
          ({ body }) => body.items.some((one: { review_id: string }) => one.review_id === review_id),
        )
      assert.deepStrictEqual([yield* shown(administrator), yield* shown(operator)], [true, false])
      for (const id of [administrator, administrator2]) yield* person({ id, version: 2, auditor: true })
      assert.deepStrictEqual(yield* signed(administrator, review_id), [403, "auditor_reads_only"])
      assert.deepStrictEqual([yield* shown(administrator), yield* shown(operator)], [false, true])
      assert.deepStrictEqual(yield* signed(operator, review_id), [204, null])
      yield* person({ id: administrator, version: 3 })
      assert.deepStrictEqual(yield* signed(administrator, review_id), [204, null])
    }))

  it.effect(
    "without a good token of an active person nothing is answered",
    () =>
      Effect.gen(function* () {
        const { fixture, requests } = yield* refusing
        const { operator } = fixture.people
        const disabled = yield* person({ status: "suspended", operator: true })
        const none: readonly [string, Headers] = ["no token", {}]
        const bad: ReadonlyArray<readonly [string, Headers]> = [
          ["another audience", yield* as(operator, { audience: "service-lifecycle" })],
          ["expired", yield* as(operator, { ttl: "-2 minutes" })],
          ["a suspended person", yield* as(disabled)],
        ]
        for (const [n, one] of catalogue.entries()) {
          const asked = requests.get(one)!
          // In turn: an address may send 300 credentials a minute that are refused.
          for (const [name, headers] of [none, bad[n % bad.length]!]) {
            const answer = yield* sent(one, asked, headers)
            assert.deepStrictEqual(codeOf(answer), [401, "invalid_token"], `${one.operation}: ${name}`)
            assert.strictEqual(answer.headers["www-authenticate"], `Bearer error="invalid_token"`)
          }
        }
      }),
    300_000,
  )

  it.effect(
    "an old sign-in may approve nothing and change no credential, and is enough for the rest",
    () =>
      Effect.gen(function* () {
        const fixture = yield* stage
        for (const one of catalogue) {
          const personId = fixture.people[everybody.find((who) => table[one.operation]![who] === "ok")!]
          const asked = yield* one.asked(fixture, personId)
          const age = freshFor[one.operation]
          const authTime = Math.floor(Date.now() / 1_000) - (age ?? 3_000) - 1
          const answer = yield* sent(one, asked, yield* as(personId, { authTime }))
          if (age === undefined) assert.strictEqual(answer.status, one.status, `${one.operation} ${answer.text}`)
          else {
            assert.deepStrictEqual(codeOf(answer), [401, "insufficient_user_authentication"], one.operation)
            assert.strictEqual(
              answer.headers["www-authenticate"],
              `Bearer error="insufficient_user_authentication", max_age="${age}"`,
            )
            const { requirements } = (yield* send("GET", "/v1/me/freshness", yield* as(personId, { authTime }))).body
            const name = age === 900 ? "approvals" : "totp.enroll"
            assert.deepStrictEqual(
              requirements.find(({ operation }: { operation: string }) => operation === name),
              { operation: name, acr_values: [], max_age_seconds: age, satisfied: false },
            )
          }
        }
      }),
    300_000,
  )

  it.effect(
    "an object that the caller may not see is answered as a missing one, to the byte",
    () =>
      Effect.gen(function* () {
        const { fixture, requests } = yield* refusing
        const { elsewhere } = fixture.people
        const blank = (text: string) => text.replaceAll(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, "<id>")
        /** `instance` shows no id of another form, as a signing key's. */
        const unknownOf = (name: string) => name === "kid" ? "k".repeat(43) : randomUUID()
        const seen: Array<string> = []
        for (const one of catalogue) {
          // A holder of an invitation's token may ask to join.
          if (!operationOf(one).template.includes("{") || one.operation === "enrollments.acceptEnrollment") continue
          const asked = requests.get(one)!
          const unknown = {
            ...asked,
            params: Object.fromEntries(Object.keys(asked.params!).map((k) => [k, unknownOf(k)])),
          }
          const headers = yield* as(elsewhere)
          const [hidden, missing] = [yield* sent(one, asked, headers), yield* sent(one, unknown, headers)]
          assert.strictEqual(blank(hidden.text), blank(missing.text), one.operation)
          const { date: _, "x-request-id": __, ...shown } = hidden.headers
          const { date: ___, "x-request-id": ____, ...shownMissing } = missing.headers
          assert.deepStrictEqual(shown, shownMissing, one.operation)
          assert.strictEqual(
            hidden.status,
            table[one.operation]!.elsewhere === "role_required" ? 403 : 404,
            one.operation,
          )
          seen.push(one.operation)
        }
        assert.isAbove(seen.length, 20)
      }),
    300_000,
  )
})
